/** Requests from a worker thread to the main thread. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MainThreadClient } from '../../../runtime/worker/main-thread-client.ts';
import type { MessageFromWorker } from '../../../runtime/worker/worker-messages.ts';

const test = suite('requests to the main thread');

test('each request gets its own reply, and failures are reported', async () => {
	const sentMessages: MessageFromWorker[] = [];
	const client = new MainThreadClient(message => sentMessages.push(message));
	const first = client.ask({ about: 'metrics', format: 'prometheus' });
	const second = client.ask({ about: 'metrics', format: 'openmetrics' });
	const ids = sentMessages.map(message => (message.type === 'ask' ? message.id : -1)) as [number, number];
	client.handleReply({ type: 'answer', id: ids[1], answer: 'second' });
	client.handleReply({ type: 'answer', id: ids[0], answer: undefined, failure: 'out of order' });
	assert.is(await second, 'second');
	const failure = await first.then(
		() => undefined,
		(error: Error) => error.message,
	);
	assert.is(failure, 'out of order');
	// A reply without a pending request is ignored.
	client.handleReply({ type: 'answer', id: 99, answer: '' });
});

test.run();
