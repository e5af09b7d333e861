/** What the main thread reads of a thread that no longer answers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import { ThreadActivity } from '../../../runtime/threads/thread-activity.ts';

function exchange(path: string, startedAt: number): Exchange {
	return { received: { method: 'GET', authority: 'a.test', path, query: 'token=s3cret' }, startedAt } as Exchange;
}

const activity = suite('thread activity');

activity('names the request that began after the last sign of life, without its query', () => {
	const own = new ThreadActivity();
	const seen = new ThreadActivity(own.memory);
	assert.is(seen.read().beat, 0);
	own.beat();
	assert.ok(seen.read().beat > 0);
	assert.is(seen.read().request, undefined);
	own.request(exchange('/long', performance.now() + 1));
	const { request, requestIsNew, phase } = seen.read();
	assert.equal({ request, requestIsNew, phase }, { request: 'GET a.test/long', requestIsNew: true, phase: 'requests' });
	own.request(exchange('/x', 0));
	assert.is(seen.read().request, 'GET a.test/x');
	assert.is(seen.read().requestIsNew, false);
});

activity('a long path is cut, and what a log must not contain is replaced', () => {
	const own = new ThreadActivity();
	own.request(exchange(`/\u0007\n é${'x'.repeat(1000)}`, 1));
	assert.is(own.read().request, `GET a.test/????${'x'.repeat(123)}`);
});

activity('tells building from messages and requests', () => {
	const own = new ThreadActivity();
	own.enter('message');
	own.enter('build');
	own.leave('message');
	assert.is(own.read().phase, 'build');
	own.leave('build');
	assert.is(own.read().phase, 'requests');
});

activity.run();
