/** A pending answer behaves like a promise for code that does not know its faster interface. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Exchange, Request } from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { PendingAnswer } from '../../../compiler/exchange/pending-answer.ts';

const pending = suite('pending answers');

function makeExchange(): Exchange {
	const received = { method: 'GET', path: '/', query: undefined, authority: 'a.example' };
	const info = { remoteAddress: '', remotePort: 0, localAddress: '', localPort: 0, tls: undefined };
	const request = new Request(received, 'http', 'a.example', new HeaderList(), null);
	return new Exchange('HTTP/1.1', info, received, request, { sendInterim() {}, watch() {} }, 0);
}

function made(): { answer: PendingAnswer; promise: Promise<void> } {
	const answer = new PendingAnswer(makeExchange());
	return { answer, promise: answer.handlerResult() as Promise<void> };
}

pending('it can be awaited, chained and caught like a promise', async () => {
	const { answer, promise } = made();
	assert.ok(promise instanceof Promise);
	const seen: string[] = [];
	const all = [
		promise.then(() => void seen.push('then')),
		promise.finally(() => void seen.push('finally')),
		(async () => {
			await promise;
			seen.push('await');
		})(),
		Promise.all([promise]).then(() => void seen.push('all')),
	];
	assert.equal(seen, []);
	answer.resolve();
	await Promise.all(all);
	assert.equal(seen.sort(), ['all', 'await', 'finally', 'then']);

	const other = made();
	const caught = other.promise.catch((error: Error) => error.message);
	other.answer.reject(new Error('no upstream'));
	assert.is(await caught, 'no upstream');
	assert.is(await other.promise.catch((error: Error) => error.message), 'no upstream', 'later too');
});

pending('the runtime is notified within the call that settles it, and the judge first', () => {
	const { answer } = made();
	const seen: string[] = [];
	answer.setOutcomeHandler({
		onAnswered: () => void seen.push('answered'),
		onFailed: (_x, error) => void seen.push(String(error)),
	});
	answer.setWaiter({ responseReady: () => void seen.push('handled') }, { copiesBody: length => length < 100 });
	assert.ok(answer.copiesBody(99));
	assert.not(answer.copiesBody(100));
	answer.resolve();
	answer.reject('twice');
	assert.equal(seen, ['answered', 'handled']);

	const failing = made().answer;
	failing.setOutcomeHandler({
		onAnswered: () => void seen.push('answered'),
		onFailed: (_x, error) => void seen.push(String(error)),
	});
	failing.setWaiter({ responseReady: () => void seen.push('handled') }, { copiesBody: () => false });
	failing.reject('broken');
	assert.equal(seen.slice(2), ['broken', 'handled']);
});

pending('an answer that is settled before it is returned is not a promise', () => {
	const answer = new PendingAnswer(makeExchange());
	answer.resolve();
	assert.is(answer.handlerResult(), undefined);
	const failed = new PendingAnswer(makeExchange());
	failed.reject(new Error('at once'));
	assert.throws(() => failed.handlerResult(), 'at once');
});

pending('no memory is lent to promise listeners, and an unhandled failure ends the connection', () => {
	const { answer, promise } = made();
	promise.then(
		() => {},
		() => {},
	);
	assert.not(answer.copiesBody(1));

	const x = makeExchange();
	const unjudged = new PendingAnswer(x);
	unjudged.handlerResult();
	let handled = false;
	unjudged.setWaiter(
		{
			responseReady() {
				handled = true;
			},
		},
		{ copiesBody: () => true },
	);
	unjudged.reject(new Error('nobody made a response of it'));
	assert.ok(handled);
	assert.ok(x.isAborted);
});

pending('continuations run in order before any listener is notified, and not after a failure', async () => {
	const seen: string[] = [];
	const judge = {
		onAnswered: () => void seen.push('answered'),
		onFailed: (_: Exchange, error: unknown) => void seen.push(`${error}`),
	};
	const { answer, promise } = made();
	assert.is(
		answer.onSuccess(() => void seen.push('one')),
		promise,
	);
	answer.onSuccess(() => void seen.push('two'));
	answer.setOutcomeHandler(judge);
	answer.resolve();
	assert.equal(seen.splice(0), ['one', 'two', 'answered']);

	const later = made();
	later.answer.onSuccess(async () => {
		await null;
		seen.push('later');
	});
	later.answer.onSuccess(() => void seen.push('last'));
	later.answer.setOutcomeHandler(judge);
	later.answer.resolve();
	assert.equal(seen, []);
	await later.promise;
	assert.equal(seen.splice(0), ['later', 'last', 'answered']);

	const failed = made().answer;
	failed.onSuccess(() => assert.unreachable());
	failed.setOutcomeHandler(judge);
	failed.reject('broken');
	for (const work of [() => Promise.reject('no'), () => JSON.parse('no')]) {
		const failing = made().answer;
		failing.onSuccess(work);
		failing.setOutcomeHandler({ ...judge, onFailed: () => void seen.push('failed') });
		failing.resolve();
		await new Promise(resolve => setTimeout(resolve, 1));
	}
	assert.equal(seen, ['broken', 'failed', 'failed']);
});

pending.run();
