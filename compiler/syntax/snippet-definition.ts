/** Defines snippets, `(name) { … }`. In a Configfile, they may have named parameters: `(secure) max_age policy="x" { … }`. */
import type { Constants } from './constants.ts';
import { expandWords } from './expand-words.ts';
import type { ExpansionReport } from './expansion-report.ts';
import { type Frame, type Snippet, spanIn } from './frame.ts';
import type { ParsedBlock, ParsedLine, ParsedWord } from './parsed-file.ts';
import { structureMistake } from './structure-mistake.ts';

/** Reports whether a text has the form `(name)`. */
export function isSnippetHead(text: string): boolean {
	return text.length >= 2 && text.startsWith('(') && text.endsWith(')');
}

/** Defines a snippet. If there already is one of this name, the first definition is kept. */
export function defineSnippet(
	line: ParsedLine,
	block: ParsedBlock,
	frame: Frame,
	snippets: Map<string, Snippet>,
	constants: Constants,
	report: ExpansionReport,
): void {
	const [headWord, ...parameterWords] = expandWords(line.words, { frame, constants, report });
	const word = { ...headWord!, span: spanIn(frame, line.words[0]!.span) };
	const name = headWord!.text.slice(1, -1);
	const existingSnippet = snippets.get(name);
	if (existingSnippet) {
		const details = {
			label: 'defined again',
			related: [{ span: existingSnippet.headWord.span, message: 'first defined here' }],
		};
		const message = `redeclaration of previously declared snippet ${name}`;
		report.report(structureMistake(report.dialect, 'snippet/defined-twice', word.span, message, details));
		return;
	}
	const parameters = readParameters(parameterWords, name, report);
	const { source } = frame;
	snippets.set(name, {
		name,
		headWord: word,
		lines: block.lines,
		source,
		parameters,
		inMainFile: !frame.imported,
		isUsed: false,
	});
}

function readParameters(
	words: readonly ParsedWord[],
	snippetName: string,
	report: ExpansionReport,
): Map<string, ParsedWord | undefined> {
	const parameters = new Map<string, ParsedWord | undefined>();
	if (report.dialect === 'compatfile' && words.length > 0) {
		const hint = 'Pass arguments at the import and refer to them by `{args[0]}`.';
		const message = `a snippet has no parameters here; found '${words[0]!.text}'`;
		report.report(structureMistake('compatfile', 'snippet/parameters', words[0]!.span, message, { hint }));
		return parameters;
	}
	for (const word of words) {
		const equalsIndex = word.text.indexOf('=');
		const name = equalsIndex === -1 ? word.text : word.text.slice(0, equalsIndex);
		if (word.quote !== 'none' || !/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name)) {
			report.report({
				code: 'snippet/parameter-name',
				severity: 'error',
				message: `\`${word.text}\` is not a parameter.`,
				span: word.span,
				hint: `Write \`(${snippetName}) name\` or \`(${snippetName}) name="default"\`.`,
			});
		} else if (parameters.has(name)) {
			report.report({
				code: 'snippet/repeated-parameter',
				severity: 'error',
				message: `The parameter \`${name}\` is declared more than once.`,
				span: word.span,
				label: 'declared again',
			});
		} else {
			const value = {
				text: word.text.slice(equalsIndex + 1),
				quote: word.valueQuote ?? 'none',
				span: word.span,
			} as const;
			parameters.set(name, equalsIndex === -1 ? undefined : value);
		}
	}
	return parameters;
}
