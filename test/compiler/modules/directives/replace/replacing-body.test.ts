/** Bodies in which texts are replaced while they are sent: matches that span pieces, and which bytes are held back. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../../../compiler/exchange/body.ts';
import type { CompileContext } from '../../../../../compiler/modules/contract/compile-context.ts';
import type { TextReplacement } from '../../../../../compiler/modules/directives/replace/replace.ts';
import { ReplacingBody } from '../../../../../compiler/modules/directives/replace/replacing-body.ts';
import { compileTextSearch, type TextSearch } from '../../../../../compiler/modules/directives/replace/text-search.ts';
import { seededRandom } from '../../../diff/random-configurations.ts';

const bodies = suite('bodies with replacements');

/** Returns a search that replaces each match of the alternative with number N by `<N:match>`. */
function searchFor(replacements: readonly Partial<TextReplacement>[], maxMatch = 8192): TextSearch {
	const cx = {
		refuse: (message: string) => {
			throw new Error(message);
		},
	} as unknown as CompileContext;
	return compileTextSearch(
		replacements.map(one => ({ find: '', replace: '', ...one })),
		maxMatch,
		cx,
	);
}

const bracketed = (number: number, [found]: RegExpExecArray): string => `<${number}:${found}>`;

/** A body in pieces. Each pull overwrites the memory of the previous piece, as when reading from a socket. */
class Pieces implements BodySource {
	readonly length = undefined;
	pulls = 0;
	readonly #pieces: readonly Uint8Array[];
	#last: Uint8Array | undefined = undefined;

	constructor(pieces: readonly Uint8Array[]) {
		this.#pieces = pieces;
	}

	pull(): Uint8Array | null | Promise<Uint8Array | null> {
		this.#last?.fill(0x21);
		const next = this.#pieces[this.pulls++];
		this.#last = next && Uint8Array.prototype.slice.call(next);
		// Every second piece arrives asynchronously.
		return this.pulls % 2 === 0 ? Promise.resolve(this.#last ?? null) : (this.#last ?? null);
	}

	cancel(): void {}
}

async function readAll(body: BodySource): Promise<Buffer> {
	const parts: Buffer[] = [];
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return Buffer.concat(parts);
		assert.ok(piece.length > 0, 'an empty piece was returned');
		parts.push(Buffer.from(piece));
	}
}

async function replaced(text: string | Uint8Array, search: TextSearch, cuts: readonly number[] = []): Promise<string> {
	const bytes = Buffer.from(text as string);
	const ends = [...cuts, bytes.length];
	const pieces = ends.map((end, at) => bytes.subarray(at === 0 ? 0 : ends[at - 1], end));
	const body = new ReplacingBody({ body: new Pieces(pieces), search, replacementFor: bracketed });
	return (await readAll(body)).toString('latin1');
}

const latin1 = (text: string): string => Buffer.from(text).toString('latin1');

bodies('a match is found wherever the body is cut', async () => {
	const search = searchFor([{ find: 'needle' }, { find: 'end$', regexp: true }, { find: '\\bé+\\b', regexp: true }]);
	const text = 'needleneedle nee needl 😀éé éa end needle end';
	const expected = latin1('<0:needle><0:needle> nee needl 😀éé éa end <0:needle> <1:end>');
	const size = Buffer.byteLength(text);
	for (let first = 0; first <= size; first++) {
		for (let second = first; second <= size; second += 3) {
			assert.is(await replaced(text, search, [first, second]), expected, `cut at ${first} and ${second}`);
		}
	}
});

bodies('the same is replaced as in one piece, for random expressions, texts and cuts', async () => {
	const random = seededRandom(7);
	const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
	const ATOMS = ['a', 'b', 'ab', '[ab]', '.', '(a|b)', '(?:ab|a)', 'é', '\\b', '(?m:$)', '(?m:^)', '$', '^', '😀'];
	const COUNTS = ['', '', '', '?', '??', '{2}', '{1,3}', '{1,3}?'];
	let matches = 0;
	for (let round = 0; round < 400; round++) {
		const expressions: string[] = [];
		while (expressions.length < 1 + (round % 3)) {
			const expression = Array.from({ length: 1 + Math.floor(random() * 4) }, () => pick(ATOMS) + pick(COUNTS)).join(
				'',
			);
			try {
				searchFor([{ find: expression, regexp: true }]);
				expressions.push(expression);
			} catch {
				// The expression is refused: it matches the empty text, or repeats an assertion.
			}
		}
		const search = searchFor(expressions.map(find => ({ find, regexp: true })));
		const text = Array.from({ length: Math.floor(random() * 40) }, () =>
			pick(['a', 'b', 'é', '\n', '😀', ' ', 'ab']),
		).join('');
		const whole = text.replace(search.regexp, (...match) => {
			matches++;
			return bracketed(
				search.alternativeIndexOf(match as unknown as RegExpExecArray),
				match as unknown as RegExpExecArray,
			);
		});
		const size = Buffer.byteLength(text);
		const cuts = Array.from({ length: 1 + Math.floor(random() * 5) }, () => Math.floor(random() * (size + 1)));
		cuts.sort((a, b) => a - b);
		const what = `${JSON.stringify(expressions)} in ${JSON.stringify(text)} cut at ${cuts}`;
		assert.is(await replaced(text, search, cuts), latin1(whole), what);
		const eachByte = Array.from({ length: size }, (_, at) => at);
		assert.is(await replaced(text, search, eachByte), latin1(whole), `${what}, byte by byte`);
	}
	assert.ok(matches > 500, `only ${matches} matches`);
});

bodies('an expression without a maximum length matches across pieces', async () => {
	const search = searchFor([
		{ find: '(?s)<!--.*?-->', regexp: true },
		{ find: 'x+y', regexp: true },
	]);
	const text = `a<!-- ${'b'.repeat(5000)} -->c ${'x'.repeat(3000)}y <!-- open`;
	const expected = await replaced(text, search);
	assert.match(expected, /^a<0:<!-- b+ -->>c <1:x+y> <!-- open$/);
	const everySeven = Array.from({ length: Math.floor(text.length / 7) }, (_, at) => 7 * at);
	assert.is(await replaced(text, search, everySeven), expected);
});

bodies('a match that is longer than the maximum stays, and later ones are replaced', async () => {
	const search = searchFor([{ find: '<b>[^<]*</b>', regexp: true }], 100);
	const long = `<b>${'x'.repeat(200)}</b>`;
	assert.is(await replaced(`${long}<b>y</b>`, search), `${long}<0:<b>y</b>>`);
	const text = `${long}<b>y</b>`;
	assert.is(
		await replaced(
			text,
			search,
			Array.from({ length: text.length }, (_, at) => at),
		),
		`${long}<0:<b>y</b>>`,
	);
});

bodies('bytes that are not UTF-8 are passed on unchanged', async () => {
	const search = searchFor([{ find: 'ab' }]);
	const bytes = Buffer.from([
		0xff, 0x61, 0x62, 0xc3, 0x61, 0x62, 0xed, 0xa0, 0x80, 0xf0, 0x9f, 0x98, 0x61, 0x62, 0xe2, 0x82,
	]);
	const expected = Buffer.concat([
		...[Buffer.from([0xff]), Buffer.from('<0:ab>'), Buffer.from([0xc3]), Buffer.from('<0:ab>')],
		...[Buffer.from([0xed, 0xa0, 0x80, 0xf0, 0x9f, 0x98]), Buffer.from('<0:ab>'), Buffer.from([0xe2, 0x82])],
	]).toString('latin1');
	for (let cut = 0; cut <= bytes.length; cut++)
		assert.is(await replaced(bytes, search, [cut]), expected, `cut at ${cut}`);
	const random = seededRandom(3);
	const noise = Buffer.from(Array.from({ length: 20_000 }, () => Math.floor(random() * 256)));
	const none = searchFor([{ find: 'never there' }]);
	assert.is(await replaced(noise, none, [1, 2, 3, 777, 10_001]), noise.toString('latin1'));
});

bodies('only what can still become a match is held back', async () => {
	const search = searchFor([{ find: 'needle' }, { find: 'data$', regexp: true }]);
	const pieces = ['data: 1\n\n', 'data: 2 nee', 'd', 'le', 'data'].map(text => Buffer.from(text));
	const source = new Pieces(pieces);
	const body = new ReplacingBody({ body: source, search, replacementFor: bracketed });
	const next = async (): Promise<string> => Buffer.from((await body.pull())!).toString();
	assert.is(await next(), 'data: 1\n\n');
	assert.is(source.pulls, 1);
	assert.is(await next(), 'data: 2 ');
	assert.is(source.pulls, 2);
	assert.is(await next(), '<0:needle>');
	assert.is(source.pulls, 4);
	assert.is(await next(), '<1:data>');
	assert.is(await body.pull(), null);
});

bodies('`once` replaces the first match of its line only', async () => {
	const search = searchFor([{ find: 'a', once: true }, { find: 'b' }]);
	assert.is(await replaced('abab', search), '<0:a><1:b>a<1:b>');
	const only = searchFor([{ find: 'a', once: true }]);
	assert.is(await replaced('aaa', only, [1, 2]), '<0:a>aa');
});

bodies('a replacement much longer than its match is returned in pieces', async () => {
	const search = searchFor([{ find: 'a' }]);
	const long = 'y'.repeat(10_000);
	const body = new ReplacingBody({
		body: new Pieces([Buffer.alloc(5000, 'a')]),
		search,
		replacementFor: () => long,
	});
	let total = 0;
	for (;;) {
		const piece = await body.pull();
		if (piece === null) break;
		total += piece.length;
		assert.ok(piece.length < 80_000, `a piece of ${piece.length} bytes`);
	}
	assert.is(total, 5000 * 10_000);
});

bodies('a long body without a newline takes linear time and little memory, whatever the expression', async () => {
	const search = searchFor([{ find: '(a+)+b', regexp: true }, { find: 'aa[^c]*c', regexp: true }, { find: 'z{3}' }]);
	const piece = Buffer.alloc(64 * 1024, 'a');
	const before = process.cpuUsage();
	let most = 0;
	const pieces = 300;
	let remaining = pieces;
	const body = new ReplacingBody({
		body: { length: undefined, pull: () => (remaining-- > 0 ? piece : null), cancel: () => {} },
		search,
		replacementFor: bracketed,
	});
	let total = 0;
	for (;;) {
		const out = await body.pull();
		if (out === null) break;
		total += out.length;
		most = Math.max(most, body.heldBytes);
	}
	assert.is(total, pieces * piece.length);
	assert.ok(most < 256 * 1024, `${most} bytes held`);
	const { user } = process.cpuUsage(before);
	// The search takes about 2 s on a slow machine; a search that backtracks would take years.
	assert.ok(user < 60e6, `${user} µs`);
});

bodies('a text that arrives byte by byte takes linear time', async () => {
	const search = searchFor([{ find: '<[^>]*>', regexp: true }]);
	let remaining = 20_000;
	const byte = Buffer.from('<');
	const body = new ReplacingBody({
		body: { length: undefined, pull: () => (remaining-- > 0 ? byte : null), cancel: () => {} },
		search,
		replacementFor: bracketed,
	});
	assert.is((await readAll(body)).length, 20_000);
});

bodies.run();
