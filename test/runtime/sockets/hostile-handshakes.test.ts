/** Clients that violate TLS before the handshake is over: each connection is closed, and its memory is freed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { hostileHandshakes } from './hostile-handshakes.ts';

const hostile = suite('hostile handshakes');

hostile('2,000 violated handshakes end no process and leave nothing behind', async () => {
	if (!isDirectIo()) return;
	const { failures } = await hostileHandshakes(2000);
	for (const reason of ['protocol', 'closed', 'alert', 'bad_client_hello']) {
		assert.ok((failures.get(reason) ?? 0) > 10, `${reason}: ${[...failures].join(' ')}`);
	}
});

hostile.run();
