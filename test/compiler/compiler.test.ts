/** `compile()` accepts text and JSON, never throws on bad input, and reports every mistake at once. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import type { ConfigFormat } from '../../compiler/dialects/dialect.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { ROOT } from '../harness.ts';
import { roundCount } from '../round-count.ts';

/** Returns a reader over in-memory files. */
function readerOf(files: { readonly [file: string]: string } = {}): Reader {
	const missing = (file: string): never => {
		throw new ReadError('ENOENT', file);
	};
	return {
		readText: file => files[file] ?? missing(file),
		readBytes: missing,
		list: missing,
		kind: file => (Object.hasOwn(files, file) ? 'file' : undefined),
		env: name => (name === 'PORT' ? '8080' : undefined),
		workingDirectory: '/work',
	};
}

function compiled(format: ConfigFormat, text: string, files?: { readonly [file: string]: string }): CompileResult {
	return compile({ format, text, name: 'input', path: '/work/input' }, readerOf(files));
}

function codes(result: CompileResult): string[] {
	return result.diagnostics.map(({ code }) => code);
}

/** Yields pseudorandom numbers from a fixed seed. */
function* randomNumbers(seed: number): Generator<number, never> {
	let state = seed;
	for (;;) {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		yield state / 4_294_967_296;
	}
}

const entry = suite('compile');

entry('an ambiguous address names the other site by its place in the text, or in JSON by its pointer', () => {
	const [found] = compiled(
		'configfile',
		'http://b.test, http://a.test {\n}\n\nhttp://a.test:80 {\n}\n',
	).diagnostics.filter(({ code }) => code === 'site/ambiguous');
	const [other] = found!.related!;
	assert.is(other!.span.source.text.slice(other!.span.start, other!.span.end), 'http://a.test');
	assert.match(found!.hint!, /^Another site has the address http:\/\/a\.test, which [^(]*$/);
	const sites = [
		{ addresses: ['http://a.test'], pipeline: [] },
		{ addresses: ['http://a.test:80'], pipeline: [] },
	];
	const [inJson] = compiled('json', JSON.stringify({ sites })).diagnostics;
	assert.match(inJson!.hint!, / \(the other site with this address: \/sites\/0\/addresses\/0\)$/);
});

entry('JSON that is not an object is rejected', () => {
	for (const text of ['null', '0', '""', 'false', '[]']) {
		const { document, plan, diagnostics } = compiled('json', text);
		assert.ok(
			diagnostics.some(({ severity }) => severity === 'error'),
			text,
		);
		assert.is(document, undefined);
		assert.is(plan, undefined);
	}
});

entry('a valid configuration has a document and a plan', () => {
	const result = compiled('configfile', ':{$PORT} {\n\trespond "hi"\n}\n');
	assert.equal(codes(result), []);
	assert.equal(result.document, { sites: [{ addresses: [':8080'], pipeline: [{ handler: 'respond', body: 'hi' }] }] });
	assert.equal(
		result.plan?.listeners.map(({ key }) => key),
		['tcp/:8080'],
	);
	assert.equal(result.files, ['/work/input']);
});

entry('a configuration with an error has neither document nor plan, and warnings do not matter', () => {
	const refused = compiled('configfile', ':8080 {\n\trespnd "hi"\n}\n');
	assert.equal([refused.document, refused.plan], [undefined, undefined]);
	const warned = compiled('configfile', ':8080 {\n\t@a path /a\n\trespond "hi"\n}\n');
	assert.equal(codes(warned), ['matcher/unused']);
	assert.ok(warned.document && warned.plan);
});

entry('mistakes of all phases are reported together, in the order of the text', () => {
	const text = `{
	threads many
}
http://a.example {
	respond @missing "x"
	uri path_regexp ( /x
}
https://a.example:80 {
	respnd "y"
}
`;
	assert.equal(codes(compiled('configfile', text)), [
		'value/not-a-whole-number',
		'matcher/unknown-name',
		'value/not-a-regular-expression',
		'address/scheme-and-port',
		'directive/unknown',
	]);
});

entry('mistakes that only code generation finds are reported before anything is applied, for each step', () => {
	const step = (find: string) => ({ handler: 'rewrite_target', path_regexp: [{ find, replace: '' }] });
	const result = compiled(
		'json',
		JSON.stringify({ sites: [{ addresses: [':80'], pipeline: [step('('), step('a'), step(')')] }] }),
	);
	assert.is(result.diagnostics.length, 2);
	assert.ok(result.diagnostics[0]!.pointer?.startsWith('/sites/0/pipeline/0'));
	assert.ok(result.diagnostics[1]!.pointer?.startsWith('/sites/0/pipeline/2'));
});

entry('every object of the document can be traced to its text', () => {
	const result = compiled('configfile', ':8080 {\n\theader X-A 1\n\trespond "hi" 201\n}\n');
	const line = (pointer: string): number => {
		const span = result.locate(pointer)!;
		return span.source.position(span.start).line;
	};
	assert.equal([line('/sites/0'), line('/sites/0/pipeline/0'), line('/sites/0/pipeline/1/status')], [1, 2, 3]);
});

entry('compiling a document gives the same document', () => {
	for (const name of readdirSync(path.join(ROOT, 'fixtures/adapt'))) {
		// Expected documents name files by absolute path; `<case>` stands for the folder of the case.
		const folder = path.join(ROOT, 'fixtures/adapt', name);
		const text = readFileSync(path.join(folder, 'expected.json'), 'utf8').replaceAll('<case>', folder);
		const result = compile({ format: 'json', text, name: 'input', path: '/work/input' }, diskReader(folder));
		assert.equal(codes(result), [], name);
		assert.equal(result.document, JSON.parse(text), name);
	}
});

entry('a mistake in a snippet is reported once, however many sites import it', () => {
	const site = (port: number) => `:${port} {\n\timport wrong\n}\n`;
	const result = compiled('configfile', `(wrong) {\n\trespnd "hi"\n}\n${site(1)}${site(2)}${site(3)}`);
	assert.equal(codes(result), ['directive/unknown']);
});

entry('broken text never makes compile() throw', () => {
	const random = randomNumbers(7);
	const next = (below: number): number => Math.floor(random.next().value * below);
	const pieces = [
		'{',
		'}',
		'"',
		'`',
		'@a',
		'(',
		')',
		'and',
		'not',
		'\n',
		' ',
		'\\',
		'<<E',
		'{host}',
		'when',
		'else',
		'{$X:y}',
		'/x*',
	];
	const folders = ['adapt', 'diagnostics'].map(kind => path.join(ROOT, 'fixtures', kind));
	for (const folder of folders) {
		for (const name of readdirSync(folder)) {
			for (const format of ['Configfile', 'Compatfile'] as const) {
				if (!readdirSync(path.join(folder, name)).includes(format)) continue;
				const text = readFileSync(path.join(folder, name, format), 'utf8');
				for (let round = 0; round < 2; round++) {
					let broken = text;
					for (let edits = 0; edits <= next(3); edits++) {
						const at = next(broken.length);
						broken = broken.slice(0, at) + pieces[next(pieces.length)] + broken.slice(at + next(6));
					}
					const dialect = next(2) === 0 ? 'configfile' : 'compatfile';
					const result = compiled(dialect, broken);
					for (const { span } of result.diagnostics) {
						if (span) assert.ok(span.start >= 0 && span.end >= span.start && span.end <= span.source.text.length);
					}
				}
			}
		}
	}
});

entry('broken documents never make compile() throw', () => {
	const random = randomNumbers(11);
	const next = (below: number): number => Math.floor(random.next().value * below);
	const values = [
		'',
		'x',
		0,
		-1,
		1.5,
		null,
		true,
		[],
		{},
		[[]],
		{ type: 'not' },
		{ handler: 'group' },
		'{',
		'[redacted]',
	];
	const folder = path.join(ROOT, 'fixtures/adapt');
	for (const name of readdirSync(folder)) {
		const text = readFileSync(path.join(folder, name, 'expected.json'), 'utf8');
		for (let round = 0; round < 2; round++) {
			const document = JSON.parse(text) as unknown;
			let at = document as { [key: string]: unknown };
			for (let depth = next(8); depth >= 0; depth--) {
				const keys = Object.keys(at);
				if (keys.length === 0) break;
				const key = keys[next(keys.length)]!;
				const child = at[key];
				if (depth > 0 && typeof child === 'object' && child !== null) at = child as { [key: string]: unknown };
				else {
					at[key] = values[next(values.length)];
					break;
				}
			}
			compiled('json', JSON.stringify(document));
		}
	}
	for (const value of values) compiled('json', JSON.stringify(value));
});

entry('a hash in an environment variable is checked where the machine that serves is known', () => {
	const text = 'http://localhost {\n\tbasic_auth {\n\t\tbob {env.HASH}\n\t}\n\trespond ok\n}\n';
	const input = { format: 'configfile', text, name: 'input', path: '/work/input' } as const;
	const facts = { hostname: '', os: '', arch: '', workingDirectory: '/work', env: () => 'no hash' };
	assert.equal(codes(compile(input, readerOf())), []);
	assert.equal(codes(compile(input, readerOf(), { facts })), ['auth/bad-hash']);
});

entry('thousands of sites compile quickly', () => {
	const siteCount = roundCount({ few: 2500, many: 10_000 });
	let text = '';
	for (let at = 0; at < siteCount; at++) {
		text += `http://site${at}.example {
	root * /srv/${at}
	header X-Site ${at}
	@api path /api/*
	reverse_proxy @api 127.0.0.1:9000
	redir /old /new permanent
	rewrite /a /b
	file_server
}
`;
	}
	// Measures the thread's processor time, because a busy machine multiplies the elapsed time.
	const before = process.threadCpuUsage();
	const result = compiled('compatfile', text);
	const { user, system } = process.threadCpuUsage(before);
	const spentMs = (user + system) / 1000;
	assert.equal(codes(result), []);
	assert.is(result.document?.sites?.length, siteCount);
	// The limit is at least five times the usual duration on an idle machine.
	assert.ok(spentMs < 2000 + 0.4 * siteCount, `${spentMs} ms`);
});

entry.run();
