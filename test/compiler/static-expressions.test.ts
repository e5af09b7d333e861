/**
 * Regular expressions in our own code that search request data meet the same standard as those in configurations: no client can
 * make a search slow by choosing the text that is searched.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { maxFastSubjectLength } from '../../compiler/codegen/regexp/backtracking.ts';
import { parseRegexp } from '../../compiler/codegen/regexp/parse-regexp.ts';
import { RegexpError } from '../../compiler/codegen/regexp/regexp-error.ts';
import { ROOT } from '../harness.ts';

const FOLDERS = [
	...['exchange', 'modules', 'codegen'].map(name => `compiler/${name}`),
	...['cache', 'files', 'listeners', 'logs', 'metrics', 'protocols', 'sockets', 'tls', 'tracing', 'worker'].map(
		name => `runtime/${name}`,
	),
	'admin',
];

/** Matches a regular expression literal where one can occur in code. */
const REGEXP_LITERAL =
	/(?<=[(,=:?&|!{}[;\s])\/(?![/*])((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)(?=[\s.,;)\]}:]|$)/gm;

/** Expressions that are slow for some texts, grouped by the reason why this is harmless. */
const HARMLESS: { readonly [why: string]: readonly RegExp[] } = {
	'they read configurations, the files that these name, and templates': [
		/\[([^\]^])[^\]]*\]/g,
		/\*+$/,
		/\/.*$/,
		/([rRbB]{0,2})(""".*?"""|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\/\/[^\n]*|\{([^\s{}:'"`]+)\}/gs,
		/\{[^{}]*\}|[^{}]+/g,
		/#(?![^{}]*\})/,
		/\?(?![^{}]*\})/,
		/(?:\{[^{}]*\}|[^=&{]|\{)+|[=&]/g,
		/=+$/,
		/^(?:(?:udp|tcp)[46]?\/)?(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|[0-9a-fA-F:]*:[0-9a-fA-F:.]+|\[[0-9a-fA-F:.]+\](?::\d{1,5})?)$/,
		/^\d*\.?\d+$/,
		/[+-]?(?:0[xX][0-9a-fA-F_]+(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?\d+)?|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/y,
		/^0x([0-9a-f]*)\.?([0-9a-f]*)p([+-]?\d+)$/,
		/^(?!\.{0,2}(\/|$))[^/]+(\/(?!\.{0,2}(\/|$))[^/]+)*$/,
		/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g,
		/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g,
		/-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/,
		/(["'])first_exist_fallback\1/g,
		/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\S]*?-----END (?:[A-Z]+ )?PRIVATE KEY-----/,
	],
	'where they begin to match they succeed': [
		/[^A-Z0-9]+/g,
		/[\udc80-\udcff]+/gu,
		/[\s,]+/,
		/[ \t]+/g,
		/[ \t,]+/,
		/[A-Z]+/g,
		/[^ \t,;="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^ \t,;"]*))?/g,
		/(?:%[0-9a-f]{2})+/gi,
		/#.*$/s,
		/\s+/g,
		/%([+\-# 0]*)(\[\d+\])?(\*|\d+)?(?:\.(\[\d+\])?(\*|\d+)?)?(\[\d+\])?(.|$)/suy,
		/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g,
		/^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s,
		/[_\-\s]+/,
		/[_\-\s]+/g,
		/\s+/,
	],
	'they read the first 8 KiB of a file that the kernel writes': [
		/^(?=[0-9a-f]+-[0-9a-f]+ )/m,
		/^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ +(.*)$/m,
	],
	'their subjects are short': [/^(.)\1$/isu, /\.?0+$/, /0+$/],
};

interface Literal {
	readonly text: string;
	readonly source: string;
	readonly flags: string;
	readonly file: string;
}

function literalsOf(folder: string): Literal[] {
	return readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true })
		.filter(entry => entry.isFile() && entry.name.endsWith('.ts'))
		.flatMap(entry => {
			const file = path.join(entry.parentPath, entry.name);
			const code = readFileSync(file, 'utf8').replace(/^\s*(?:\*|\/\/|\/\*).*$/gm, '');
			const found = Array.from(code.matchAll(REGEXP_LITERAL), ([text, source, flags]) => {
				return { text, source: source!, flags: flags!, file: path.relative(ROOT, file) };
			});
			// `a / b / c` looks like a literal, but is two divisions.
			return found.filter(({ source }) => !source.startsWith(' '));
		});
}

/** Converts an expression to RE2 syntax. A lookaround becomes a group, because it backtracks just as often. */
function toRe2({ source, flags }: Literal): string {
	const text = source
		.replace(/\\u\{([0-9a-f]+)\}|\\u([0-9a-f]{4})/gi, (_, braced, plain) => `\\x{${braced ?? plain}}`)
		.replace(/\\0(?!\d)/g, '\\x00')
		.replace(/\[\^\]/g, '(?s:.)')
		.replace(/\(\?(?:[=!]|<[=!])/g, '(?:');
	const inner = /[ms]/.test(flags) ? `(?${flags.replace(/[^ms]/g, '')})${text}` : text;
	return flags.includes('y') ? `^(?:${inner})` : inner;
}

const expressions = suite('regular expressions in the code');

expressions('they are fast on any subject, or their subject does not come from a client', () => {
	const literals = FOLDERS.flatMap(literalsOf);
	assert.ok(literals.length > 250, `${literals.length} literals were found`);
	const slow: string[] = [];
	const harmless = new Set(Object.values(HARMLESS).flat().map(String));
	const used = new Set<string>();
	for (const literal of literals) {
		let length: number;
		try {
			const { root } = parseRegexp(toRe2(literal), literal.flags.includes('i'));
			length = maxFastSubjectLength(root, 'anywhere');
		} catch (error) {
			assert.instance(error, RegexpError);
			length = 0;
		}
		if (length === Infinity) continue;
		if (harmless.has(literal.text)) used.add(literal.text);
		else slow.push(`${literal.file}: ${literal.text}`);
	}
	const advice = 'Write a loop or `withoutBlanks` instead, or say in HARMLESS why no client can make it slow.';
	assert.equal(slow, [], advice);
	assert.equal([...harmless.difference(used)], [], 'These expressions are gone.');
});

expressions.run();
