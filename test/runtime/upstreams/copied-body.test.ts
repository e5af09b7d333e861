/** The copy that `mirror` makes of a body: the original passes unchanged, and the memory of the copy is released in every case. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { CopiedBody } from '../../../compiler/modules/directives/mirror/copied-body.ts';
import { ThreadMirrorGate } from '../../../runtime/upstreams/thread-mirror-gate.ts';

const copies = suite('copies of bodies');

/** Maximum number of bytes that all copies together may take. */
const MEMORY_BYTES = 100;

function createGate(): ThreadMirrorGate {
	const counts = { countSent: () => {}, countDropped: () => {} };
	return new ThreadMirrorGate({ upstream: 'a', maxInFlight: 1, maxBytes: MEMORY_BYTES }, counts);
}

/**
 * Returns a body whose pieces all use the same memory. If `late`, each piece arrives after a turn of the event loop. A piece that
 * is an Error is thrown.
 */
function bodyOf(pieces: readonly (string | Error)[], late: boolean): BodySource & { readonly canceled: () => boolean } {
	const shared = Buffer.alloc(200);
	let next = 0;
	let canceled = false;
	return {
		length: undefined,
		canceled: () => canceled,
		pull() {
			const piece = pieces[next++];
			if (piece instanceof Error) {
				if (!late) throw piece;
				return Promise.reject(piece);
			}
			shared.fill('?');
			const bytes = piece === undefined ? null : shared.subarray(0, shared.write(piece));
			return late ? Promise.resolve(bytes) : bytes;
		},
		cancel() {
			canceled = true;
		},
	};
}

async function readAll(body: BodySource): Promise<string> {
	let text = '';
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return text;
		text += Buffer.from(piece).toString();
	}
}

for (const isLate of [false, true]) {
	const when = isLate ? 'later' : 'at once';

	copies(`are complete if the body was read to its end, ${when}`, async () => {
		const memory = createGate();
		const got: string[] = [];
		const body = new CopiedBody(bodyOf(['one ', 'two ', 'three'], isLate), memory, 50, {
			onComplete: bytes => got.push(Buffer.from(bytes).toString()),
			onDropped: reason => got.push(reason),
		});
		assert.is(await readAll(body), 'one two three');
		assert.equal(got, ['one two three']);
		// The memory belongs to the receiver, which releases it.
		assert.not.ok(memory.reserve(MEMORY_BYTES));
		memory.release(13);
		assert.ok(memory.reserve(MEMORY_BYTES));
	});

	copies(
		`are given up beyond the limit, the memory, or an error, and what is read stays the same, ${when}`,
		async () => {
			for (const [pieces, limit, reserved, reason] of [
				[['12345', '67890', '!'], 10, 0, 'body_too_large'],
				[['12345', '67890', '!'], 50, MEMORY_BYTES - 7, 'out_of_memory'],
				[['12345', new Error('cut short')], 50, 0, 'body_unread'],
			] as const) {
				const memory = createGate();
				memory.reserve(reserved);
				const got: string[] = [];
				const body = new CopiedBody(bodyOf(pieces, isLate), memory, limit, {
					onComplete: () => got.push('copied'),
					onDropped: why => got.push(why),
				});
				const text = await readAll(body).catch(error => (error as Error).message);
				assert.is(text, reason === 'body_unread' ? 'cut short' : pieces.join(''));
				body.giveUp('body_unread');
				assert.equal(got, [reason]);
				memory.release(reserved);
				assert.ok(memory.reserve(MEMORY_BYTES), reason);
			}
		},
	);
}

copies('are given up when the body is canceled or nobody reads on', async () => {
	for (const end of ['cancel', 'give up'] as const) {
		const memory = createGate();
		const got: string[] = [];
		const source = bodyOf(['12345', '67890'], false);
		const body = new CopiedBody(source, memory, 50, {
			onComplete: () => got.push('copied'),
			onDropped: why => got.push(why),
		});
		await body.pull();
		assert.is(body.heldBytes, 5);
		if (end === 'cancel') body.cancel();
		else body.giveUp('body_unread');
		assert.is(source.canceled(), end === 'cancel');
		assert.equal(got, ['body_unread']);
		assert.is(body.heldBytes, 0);
		assert.ok(memory.reserve(MEMORY_BYTES));
		assert.is(Buffer.from((await body.pull())!).toString(), '67890');
		assert.equal(got, ['body_unread']);
	}
});

copies('prevent that the kernel moves bytes past them', async () => {
	const source: BodySource = { ...bodyOf(['1'], false), sendTo: () => 7 };
	const body = new CopiedBody(source, createGate(), 50, { onComplete: () => {}, onDropped: () => {} });
	assert.is(body.sendTo, undefined);
	await readAll(body);
	assert.is(body.sendTo!(1), 7);
});

copies.run();
