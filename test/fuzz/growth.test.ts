/**
 * Texts constructed so that their compilation expands them: each is compiled or refused in bounded time, with short diagnostics.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import { toReport } from '../../compiler/diagnostics/diagnostic-report.ts';
import type { ConfigFormat } from '../../compiler/dialects/dialect.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { maxNesting } from '../../compiler/syntax/parsed-file.ts';

function readerOf(files: { readonly [path: string]: string }): Reader {
	const missing = (path: string): never => {
		throw new ReadError('ENOENT', path);
	};
	return {
		readText: path => files[path] ?? missing(path),
		readBytes: missing,
		list: missing,
		kind: path => (files[path] === undefined ? undefined : 'file'),
		env: () => undefined,
		workingDirectory: '/work',
	};
}

interface Outcome {
	readonly milliseconds: number;
	readonly codes: readonly string[];
	readonly said: number;
}

function outcome(format: ConfigFormat, text: string, files: { readonly [path: string]: string } = {}): Outcome {
	const started = process.cpuUsage();
	const input = { format, text, name: 'main', path: '/work/main' };
	const { diagnostics } = compile(input, readerOf({ '/work/main': text, ...files }));
	const said = diagnostics.reduce((sum, one) => sum + toReport(one).text.length, 0);
	if (format !== 'json') formatText(text);
	const { user, system } = process.cpuUsage(started);
	return { milliseconds: (user + system) / 1000, codes: diagnostics.map(({ code }) => code), said };
}

/** Length of a long text; test/long/growth.test.ts uses ten million characters. */
const TEXT_LENGTH = Number(process.env.GROWTH_LENGTH ?? 50_000);
/** Processor milliseconds allowed for a text on a slow machine. */
const MAX_MS = 4000 + TEXT_LENGTH / 500;

const growth = suite('growth');
const dialects = ['configfile', 'compatfile'] as const;

growth('a long text of one character or pair takes linear time', () => {
	const braces = ['{', '}', '{\n', '}\n', '{}'];
	const others = ['"', '`', '(', '[', '\\', '#', '{$', '{$X:', '<<E ', 'a{', '}a', '\r', ','];
	for (const piece of TEXT_LENGTH > 1_000_000 ? braces : [...braces, ...others]) {
		const { milliseconds, said } = outcome('configfile', piece.repeat(Math.floor(TEXT_LENGTH / piece.length)));
		assert.ok(milliseconds < MAX_MS, `${JSON.stringify(piece)}: ${Math.round(milliseconds)} ms`);
		assert.ok(said < 2_000_000, `${JSON.stringify(piece)}: ${said} characters are said`);
	}
	for (const piece of ['{', '[', '{"a":', '"']) {
		assert.ok(outcome('json', piece.repeat(Math.floor(TEXT_LENGTH / piece.length))).milliseconds < MAX_MS, piece);
	}
});

growth('blocks can be nested up to the documented limit', () => {
	const nested = (levels: number): string => `:80 {\n${'handle {\n'.repeat(levels)}${'}\n'.repeat(levels)}}\n`;
	for (const dialect of dialects) {
		assert.equal(
			outcome(dialect, nested(maxNesting - 1)).codes.filter(code => code.startsWith('syntax/')),
			[],
		);
		assert.ok(outcome(dialect, nested(maxNesting + 1)).codes.includes('syntax/nesting-too-deep'));
		assert.ok(outcome(dialect, nested(20_000)).milliseconds < MAX_MS);
	}
});

growth('circular imports are reported', () => {
	for (const dialect of dialects) {
		assert.ok(outcome(dialect, 'import main\n').codes.includes('import/cycle'));
		const files = { '/work/a': 'import b\n', '/work/b': 'import c\n', '/work/c': 'import a\n' };
		assert.ok(outcome(dialect, ':80 {\n\timport a\n}\n', files).codes.includes('import/cycle'));
	}
});

growth('files that import each other twice at every level are stopped', () => {
	const files: { [path: string]: string } = {};
	for (let level = 0; level < 40; level++) files[`/work/f${level}`] = `import f${level + 1}\nimport f${level + 1}\n`;
	files['/work/f40'] = 'respond x\n';
	{
		const { milliseconds, codes } = outcome('configfile', ':80 {\n\timport f0\n}\n', files);
		assert.ok(codes.length > 0 && milliseconds < MAX_MS, `${Math.round(milliseconds)} ms, ${codes.slice(0, 3)}`);
	}
});

growth('snippets that use each other many times are stopped', () => {
	const snippet = (level: number): string => `(s${level}) {\n${`\timport s${level - 1}\n`.repeat(10)}}\n`;
	const text = `(s0) {\n\theader X-A 1\n}\n${Array.from({ length: 12 }, (_, level) => snippet(level + 1)).join('')}:80 {\n\timport s12\n}\n`;
	{
		const { milliseconds, codes } = outcome('compatfile', text);
		assert.ok(codes.length > 0 && milliseconds < MAX_MS, `${Math.round(milliseconds)} ms, ${codes.slice(0, 3)}`);
	}
});

growth('arguments and blocks that double themselves are stopped', () => {
	const doubling = (level: number): string => `(d${level}) {\n\timport d${level - 1} {args[:]} {args[:]}\n}\n`;
	const args = `(d0) {\n\theader X {args[0]}\n}\n${Array.from({ length: 40 }, (_, level) => doubling(level + 1)).join('')}:80 {\n\timport d40 a b\n}\n`;
	const passing = (level: number): string =>
		`(p${level}) {\n\timport p${level - 1} {\n\t\t{block}\n\t\t{block}\n\t}\n}\n`;
	const blocks = `(p0) {\n\t{block}\n}\n${Array.from({ length: 40 }, (_, level) => passing(level + 1)).join('')}:80 {\n\timport p40 {\n\t\theader X 1\n\t}\n}\n`;
	for (const text of [args, blocks]) {
		const { milliseconds, codes } = outcome('compatfile', text);
		assert.ok(codes.length > 0 && milliseconds < MAX_MS, `${Math.round(milliseconds)} ms, ${codes.slice(0, 3)}`);
	}
});

growth('many sites, matchers, words and lines take linear time', () => {
	const sites = (count: number): string =>
		Array.from({ length: count }, (_, at) => `:${at + 1} {\n\trespond x\n}\n`).join('');
	const matchers = (count: number): string =>
		`:80 {\n${Array.from({ length: count }, (_, at) => `\t@m${at} path /${at}\n\trespond @m${at} x\n`).join('')}}\n`;
	const words = (count: number): string => `:80 {\n\t@a path ${'/x '.repeat(count)}\n\trespond @a x\n}\n`;
	for (const make of [sites, matchers, words]) {
		outcome('configfile', make(200));
		const few = outcome('configfile', make(500)).milliseconds;
		const many = outcome('configfile', make(4000)).milliseconds;
		// An input eight times as large may take eight times as long, with a margin for other processes, but not 64 times as long.
		assert.ok(many < 24 * few + 1000, `${make.name}: ${Math.round(few)} ms, then ${Math.round(many)} ms`);
	}
});

growth('many quoted values and words with carriage returns are formatted in linear time', () => {
	const millisecondsFor = (text: string): number => {
		const { user, system } = process.cpuUsage();
		formatText(text);
		const spent = process.cpuUsage({ user, system });
		return (spent.user + spent.system) / 1000;
	};
	for (const [prefix, piece] of [
		['', 'use a b="c" '],
		['a# ', '<\r'],
	] as const) {
		millisecondsFor(prefix + piece.repeat(1000));
		const few = millisecondsFor(prefix + piece.repeat(10_000));
		const many = millisecondsFor(prefix + piece.repeat(80_000));
		assert.ok(many < 24 * few + 1000, `${piece}: ${Math.round(few)} ms, then ${Math.round(many)} ms`);
	}
});

growth.run();
