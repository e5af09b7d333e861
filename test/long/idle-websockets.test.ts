/** Ten thousand idle WebSockets through one process, or as many as the descriptor limit allows. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idleWebSockets, maxConnections } from '../bench/idle-websockets.ts';

const idle = suite('idle WebSockets');

idle('idle connections use little memory and almost no processor time, and still work', async () => {
	const count = Math.min(10_000, maxConnections());
	const result = await idleWebSockets('svc', count, 3);
	console.log(JSON.stringify(result));
	assert.is(result.answered, result.asked);
	assert.ok(result.asked >= Math.min(count, 50));
	const each = (result.after - result.before) / count;
	assert.ok(each < 24 * 1024, `${each} bytes each`);
	assert.ok(result.idleSeconds < 0.5, `${result.idleSeconds} s`);
});

idle.run();
