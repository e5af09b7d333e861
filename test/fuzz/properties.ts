/** Properties that must hold for every text and every document. */
import { isDeepStrictEqual } from 'node:util';
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import { toReport } from '../../compiler/diagnostics/diagnostic-report.ts';
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { lint } from '../../compiler/lint/lint.ts';
import { printedForm } from '../../compiler/schema/printed-form.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { tokenize } from '../../compiler/syntax/tokens.ts';
import type { Seed } from './corpus.ts';

/** Importable files that import themselves and each other. */
const FILES: { readonly [path: string]: string } = {
	'/work/part': 'header X-Part 1\n',
	'/work/a': 'import b\n',
	'/work/b': 'import a\nrespond b\n',
	'/work/deep': '(deep) {\n\timport part\n}\n',
};

/** A reader that never reads the machine's files, so that a seed gives the same result everywhere. */
export const emptyReader: Reader = {
	readText: path => FILES[path] ?? missing(path),
	readBytes: path => missing(path),
	list: path => (path === '/work' ? Object.keys(FILES).map(name => name.slice('/work/'.length)) : missing(path)),
	kind: path => (FILES[path] === undefined ? (path === '/work' ? 'directory' : undefined) : 'file'),
	env: name => (name === 'X' ? 'v w' : name === 'PORT' ? '8080' : name === 'UPSTREAM' ? '127.0.0.1:9' : undefined),
	workingDirectory: '/work',
};

function missing(path: string): never {
	throw new ReadError('ENOENT', path);
}

/** Returns the CPU milliseconds allowed for a text: far above linear time, far below quadratic time. */
function budgetMs(text: string): number {
	// A text is compiled several times, and a regular expression just below the bound on its cost takes half a second each time.
	return 3000 + text.length / 5;
}

/** Thrown when a property does not hold. The message says why. */
export class BrokenPropertyError extends Error {}

/**
 * Checks all properties. Throws any exception of the compiler, or {@link BrokenPropertyError}. A run that was too slow is
 * repeated once if `again` is true.
 */
export async function checkProperties({ format, text }: Seed, again = true): Promise<void> {
	const started = process.cpuUsage();
	const compiled = compile({ format, text, name: 'input' }, emptyReader);
	for (const diagnostic of compiled.diagnostics) {
		const { span, message } = diagnostic;
		const inside = !span || (span.start >= 0 && span.start <= span.end && span.end <= span.source.text.length);
		if (!inside) throw new BrokenPropertyError(`${diagnostic.code} has a place outside the text`);
		if (message === '') throw new BrokenPropertyError(`${diagnostic.code} has an empty message`);
		if (diagnostic.code === 'document/cannot-be-built')
			throw new BrokenPropertyError(`an unforeseen failure: ${message}`);
		toReport(diagnostic);
	}
	if (compiled.document) checkDocument(compiled);
	if (format !== 'json') checkFormat({ format, text }, compiled);
	if (compiled.document && compiled.plan) {
		const { document, plan } = compiled;
		const deps = { facts: UNKNOWN_HOST_FACTS, lease: () => undefined };
		await lint({
			input: { format, text, name: 'input' },
			compiled: { ...compiled, document, plan },
			reader: emptyReader,
			deps,
		});
	}
	const { user, system } = process.cpuUsage(started);
	const took = (user + system) / 1000;
	// The first slow run may be due to the load of the machine.
	if (took > budgetMs(text) && again) await checkProperties({ format, text }, false);
	else if (took > budgetMs(text))
		throw new BrokenPropertyError(`it took ${Math.round(took)} ms for ${text.length} characters`);
}

/** Asserts that the compiled document is accepted, and that it compiles to itself. */
function checkDocument({ document }: CompileResult): void {
	const text = JSON.stringify(printedForm(document!));
	const again = compile({ format: 'json', text, name: 'again' }, emptyReader);
	if (!again.document) {
		throw new BrokenPropertyError(
			`its document is refused: ${again.diagnostics.map(one => `${one.code} ${one.pointer}`).join(', ')}`,
		);
	}
	if (JSON.stringify(printedForm(again.document)) !== text)
		throw new BrokenPropertyError('its document comes out another one');
}

/**
 * Reports whether formatting is expected to change the meaning of a text. Words such as `a{` and `}a` are plain text to the
 * lexer, but look like mistyped blocks. As documented, the formatter turns them into blocks, and treats a backquote anywhere as a
 * quote. The line break that it adds at the end of a file becomes part of an unterminated quote, and turns a final `{` into a
 * block.
 */
function isMendedByFormatting({ format, text }: Seed, { diagnostics }: CompileResult): boolean {
	if (/\{\\?$/.test(text.trimEnd()) || /\{\$\s/.test(text)) return true;
	// The variable is empty here, so its substitution brings together what is on both sides of it.
	if (/\{\$[^}]*\}["`<\\{}#]|\{\{\$|\\\s*\{\$/.test(text)) return true;
	// The formatter does not know the language, and a quote begins the value of `name="value"` in a Configfile only.
	if (format === 'compatfile' && /(?:^|\s)(?:use\s|\().*=["`]/.test(text)) return true;
	const tokens = tokenize(text, format as Dialect);
	// To the lexer, a heredoc ends where its marker first occurs. The formatter expects white space after the marker.
	if (tokens.some(({ payload }) => payload?.quote === 'heredoc' && /\S/.test(text[payload.end] ?? ''))) return true;
	const words = tokens.filter(({ payload }) => payload === undefined || payload.quote === 'none');
	if (words.some(({ image }) => /^\}.|.\{\\?$|.`/s.test(image.replaceAll('\ufeff', 'x').trim()))) return true;
	// A word such as `<<E` may contain a tab or end with a backslash, which it loses with the `\` that is put before it.
	if (words.some(({ image }) => /^<<.*[\s\\]/s.test(image))) return true;
	// In a snippet or route that is never used, no error is reported for a word that ends in an unmatched brace.
	if (/^\s*&?\(/m.test(text) && words.some(({ image }) => /^[^{]+\}$/.test(image))) return true;
	return diagnostics.some(({ code }) => code === 'syntax/unterminated-quote');
}

/** Asserts that formatting is stable and does not change the meaning. */
function checkFormat({ format, text }: Seed, compiled: CompileResult): void {
	const formatted = formatText(text);
	if (formatText(formatted) !== formatted) throw new BrokenPropertyError('formatting twice is not formatting once');
	if (!compiled.document || isMendedByFormatting({ format, text }, compiled)) return;
	const again = compile({ format, text: formatted, name: 'input' }, emptyReader);
	if (!again.document) {
		throw new BrokenPropertyError(`formatted it is refused: ${again.diagnostics.map(({ code }) => code).join(', ')}`);
	}
	if (!isDeepStrictEqual(again.document, compiled.document))
		throw new BrokenPropertyError('formatted it makes another document');
}
