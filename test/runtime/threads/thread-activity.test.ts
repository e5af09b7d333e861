/** What the main thread can find out about an unresponsive thread. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import { ThreadActivity } from '../../../runtime/threads/thread-activity.ts';

function fakeExchange(path: string, startedAt: number): Exchange {
	return { received: { method: 'GET', authority: 'a.test', path, query: 'token=s3cret' }, startedAt } as Exchange;
}

const activity = suite('thread activity');

activity('the activity names the request that started after the last response, without its query', () => {
	const own = new ThreadActivity();
	const seen = new ThreadActivity(own.memory);
	assert.is(seen.read().beat, 0);
	own.sendHeartbeat();
	assert.ok(seen.read().beat > 0);
	assert.is(seen.read().request, undefined);
	own.recordRequest(fakeExchange('/long', performance.now() + 1));
	const { request, isRequestNew: requestIsNew, phase } = seen.read();
	assert.equal({ request, requestIsNew, phase }, { request: 'GET a.test/long', requestIsNew: true, phase: 'requests' });
	own.recordRequest(fakeExchange('/x', 0));
	assert.is(seen.read().request, 'GET a.test/x');
	assert.is(seen.read().isRequestNew, false);
});

activity('long paths are truncated, and characters not allowed in a log are replaced', () => {
	const own = new ThreadActivity();
	own.recordRequest(fakeExchange(`/\u0007\n é${'x'.repeat(1000)}`, 1));
	assert.is(own.read().request, `GET a.test/????${'x'.repeat(123)}`);
});

activity('the phase distinguishes building, messages and requests', () => {
	const own = new ThreadActivity();
	own.enterPhase('message');
	own.enterPhase('build');
	own.leavePhase('message');
	assert.is(own.read().phase, 'build');
	own.leavePhase('build');
	assert.is(own.read().phase, 'requests');
});

activity.run();
