/** Code actions: fixes of findings, comments that silence findings, and conversions of the text. */
import type { Diagnostic, Fix } from '../diagnostics/diagnostic.ts';
import { registryOf } from '../lower/registry.ts';
import { formatText } from '../syntax/format.ts';
import type { ParsedLine } from '../syntax/parsed-file.ts';
import { formattingEdits } from './formatting.ts';
import { occurrencesAt } from './names.ts';
import {
	everyLine,
	type FileRange,
	kindOfTopLevel,
	placeAt,
	rangeOfLine,
	type TextRange,
	type TextSyntax,
} from './text-syntax.ts';
import type { Workspace } from './workspace.ts';

/** The replacement of a range in a file. */
export interface FileEdit extends FileRange {
	readonly text: string;
}

/** A code action: a change of the text that an editor offers. */
export interface Action {
	readonly title: string;
	readonly kind: 'fix' | 'fix-all' | 'silence' | 'extract' | 'inline';
	readonly edits: readonly FileEdit[];
	/** The finding that the action resolves. */
	readonly finding?: Diagnostic;
	/** True if an editor should offer the action first. */
	readonly isPreferred?: boolean;
}

/** Returns the actions for a range of text and for the findings in it. `findings` are all findings in the file. */
export function actionsAt(
	workspace: Workspace,
	syntax: TextSyntax,
	range: TextRange,
	findings: readonly Diagnostic[],
): Action[] {
	const localFindings = findings.filter(({ span }) => span && span.start <= range.end && span.end >= range.start);
	return [
		...localFindings.flatMap(finding => fixActions(finding)),
		...fixAllActions(localFindings, findings),
		...localFindings.flatMap(finding => silenceActions(syntax, finding)),
		...inlineActions(workspace, syntax, range.start),
		...(range.end > range.start ? extractActions(workspace, syntax, range) : []),
	];
}

/** Returns the edits of all safe fixes among the findings of a file, for fixing on save. */
export function safeFixEdits(findings: readonly Diagnostic[]): FileEdit[] {
	return mergedEdits(findings.filter(({ fix }) => fix?.safety === 'safe'));
}

function fixActions(finding: Diagnostic): Action[] {
	const { fix } = finding;
	if (!fix || fix.edits.length === 0) return [];
	return [{ title: fixTitle(fix, finding), kind: 'fix', edits: fileEdits(fix), finding, isPreferred: true }];
}

function fixTitle({ edits }: Fix, { code }: Diagnostic): string {
	const [edit, secondEdit] = edits;
	if (!edit || secondEdit) return `Fix ${code}`;
	const { source, start, end } = edit.span;
	const oldText = shortTitle(source.text.slice(start, end));
	const newText = shortTitle(edit.text);
	if (oldText === undefined || newText === undefined) return `Fix ${code}`;
	if (newText === '') return `Remove \`${oldText}\``;
	return oldText === '' ? `Insert \`${newText}\`` : `Change \`${oldText}\` to \`${newText}\``;
}

/** Returns a text without surrounding white space, for a title; undefined if it is too long or has several lines. */
function shortTitle(text: string): string | undefined {
	const trimmed = text.trim();
	return trimmed.length <= 60 && !trimmed.includes('\n') ? trimmed : undefined;
}

/** Returns the actions that apply all fixes of a rule in the file, for rules with several fixes. */
function fixAllActions(localFindings: readonly Diagnostic[], findings: readonly Diagnostic[]): Action[] {
	const codes = new Set(localFindings.flatMap(({ code, fix }) => (fix ? code : [])));
	return [...codes].flatMap(code => {
		const sameCodeFindings = findings.filter(finding => finding.code === code && finding.fix);
		if (sameCodeFindings.length < 2) return [];
		return [
			{
				title: `Fix all ${sameCodeFindings.length} findings of ${code} in this file`,
				kind: 'fix-all' as const,
				edits: mergedEdits(sameCodeFindings),
			},
		];
	});
}

function fileEdits({ edits }: Fix): FileEdit[] {
	return edits.flatMap(({ span: { source, start, end }, text }): FileEdit[] => {
		const { path } = source;
		if (path === undefined) return [];
		// If an edit only formats the whole text, it is divided into edits of single lines, so that the editor keeps its cursor and
		// marks.
		const replacesWholeText = start === 0 && end === source.text.length && text === formatText(source.text);
		return replacesWholeText
			? formattingEdits(source.text).map(edit => ({ path, ...edit }))
			: [{ path, start, end, text }];
	});
}

/** Returns the edits of several fixes. If fixes overlap, only the first one is included. */
function mergedEdits(findings: readonly Diagnostic[]): FileEdit[] {
	const acceptedEdits: FileEdit[] = [];
	for (const { fix } of findings) {
		const edits = fix ? fileEdits(fix) : [];
		const overlaps = edits.some(edit =>
			acceptedEdits.some(other => other.path === edit.path && edit.start < other.end && other.start < edit.end),
		);
		const repeats = edits.some(edit =>
			acceptedEdits.some(other => other.path === edit.path && other.start === edit.start && other.end === edit.end),
		);
		if (!overlaps && !repeats) acceptedEdits.push(...edits);
	}
	return acceptedEdits;
}

/** Returns the action that silences a finding, by inserting `# lint: off RULE` above its line. */
function silenceActions(syntax: TextSyntax, finding: Diagnostic): Action[] {
	const { code, severity, span } = finding;
	if (severity === 'error' || !span) return [];
	const { text, path } = syntax;
	const lineStart = text.lastIndexOf('\n', span.start - 1) + 1;
	const canInsertLine = !/\\\r?\n$/.test(text.slice(0, lineStart)) && !isInsideWord(syntax, lineStart);
	if (!canInsertLine) return [];
	const commentAbove = /(?:^|\n)[ \t]*# lint: off((?: [\w/*-]+)*)[ \t]*\n$/.exec(text.slice(0, lineStart));
	const indent = /^[ \t]*/.exec(text.slice(lineStart))![0];
	const edit = commentAbove?.[1]
		? { path, start: lineStart - 1, end: lineStart - 1, text: ` ${code}` }
		: { path, start: lineStart, end: lineStart, text: `${indent}# lint: off ${code}\n` };
	return [{ title: `Silence ${code} here`, kind: 'silence', edits: [edit], finding }];
}

function isInsideWord({ lines }: TextSyntax, offset: number): boolean {
	for (const { line } of everyLine(lines)) {
		if (line.words.some(({ span }) => span.start < offset && offset <= span.end)) return true;
	}
	return false;
}

/** Returns the action that replaces the constant at an offset by its value everywhere, and removes its definition. */
function inlineActions(workspace: Workspace, syntax: TextSyntax, offset: number): Action[] {
	const uses = occurrencesAt(workspace, syntax, offset);
	const definitions = uses.filter(({ role }) => role === 'definition');
	const [definition] = definitions;
	if (definition?.kind !== 'let' || definitions.length > 1) return [];
	const definingSyntax = workspace.syntaxOf(definition.path)!;
	const valueWords = definition.line.words.slice(2);
	if (valueWords.length === 0) return [];
	const valueText = definingSyntax.text.slice(valueWords[0]!.span.start, valueWords.at(-1)!.span.end);
	const isPlainValue = valueWords.length === 1 && valueWords[0]!.quote === 'none' && valueWords[0]!.text === valueText;
	const edits: FileEdit[] = [];
	for (const use of uses) {
		if (use.role === 'definition') continue;
		const { text } = workspace.syntaxOf(use.path)!;
		const range = { start: use.start - '{let.'.length, end: use.end + 1 };
		const isWholeWord = use.line.words.some(
			({ span, quote }) => quote === 'none' && span.start === range.start && span.end === range.end,
		);
		// As part of a word, a reference can be replaced only by a single unquoted value.
		if ((!isWholeWord && !isPlainValue) || text[range.end - 1] !== '}') return [];
		edits.push({ path: use.path, ...range, text: valueText });
	}
	edits.push({ path: definition.path, ...wholeLines(definingSyntax.text, rangeOfLine(definition.line)), text: '' });
	return [{ title: `Inline \`${definition.name}\``, kind: 'inline', edits }];
}

/** Returns a range extended to complete lines, including the last newline. */
function wholeLines(text: string, { start, end }: TextRange): TextRange {
	const newline = text.indexOf('\n', end);
	return { start: text.lastIndexOf('\n', start - 1) + 1, end: newline === -1 ? text.length : newline + 1 };
}

/** Returns the action that moves the selected lines of a site to a snippet. */
function extractActions(workspace: Workspace, syntax: TextSyntax, selection: TextRange): Action[] {
	const { text, path, dialect } = syntax;
	const trimmedRange = {
		start: selection.start + /^\s*/.exec(text.slice(selection.start, selection.end))![0].length,
		end: selection.end - /\s*$/.exec(text.slice(selection.start, selection.end))![0].length,
	};
	if (trimmedRange.end <= trimmedRange.start) return [];
	const { enclosingLines } = placeAt(syntax, trimmedRange.start);
	const [topLine] = enclosingLines;
	const innerBlock = enclosingLines.at(-1)?.block;
	if (!topLine || !innerBlock) return [];
	const kind = kindOfTopLevel(topLine, dialect, registryOf(dialect).directives);
	if (kind !== 'site' && kind !== 'route') return [];
	const lines = innerBlock.lines.filter(line => rangesOverlap(rangeOfLine(line), trimmedRange));
	const hasWholeLines =
		lines.length > 0 &&
		lines.every(line => line.alternative === undefined || rangesOverlap(rangeOfLine(line), trimmedRange));
	if (!hasWholeLines || lines.some(({ words: [first] }) => first?.text === 'let')) return [];
	const movedRange = wholeLines(text, { start: rangeOfLine(lines[0]!).start, end: endOfLine(lines.at(-1)!) });
	if (movedRange.start < innerBlock.open.end || movedRange.end > innerBlock.close.start) return [];
	const name = unusedSnippetName(workspace, syntax);
	const indent = /^[ \t]*/.exec(text.slice(movedRange.start))![0];
	const body = text
		.slice(movedRange.start, movedRange.end)
		.split('\n')
		.map(line => (line.startsWith(indent) ? `\t${line.slice(indent.length)}` : line))
		.join('\n')
		.replace(/\t$/, '');
	const insertOffset = wholeLines(text, rangeOfLine(topLine)).start;
	return [
		{
			title: `Extract to the snippet \`${name}\``,
			kind: 'extract',
			edits: [
				{ path, start: insertOffset, end: insertOffset, text: `(${name}) {\n${body}}\n\n` },
				{ path, ...movedRange, text: `${indent}${dialect === 'configfile' ? 'use' : 'import'} ${name}\n` },
			],
		},
	];
}

function rangesOverlap(first: TextRange, second: TextRange): boolean {
	return first.start < second.end && second.start < first.end;
}

function endOfLine(line: ParsedLine): number {
	return line.alternative ? endOfLine(line.alternative) : rangeOfLine(line).end;
}

function unusedSnippetName(workspace: Workspace, syntax: TextSyntax): string {
	const usedNames = new Set(
		workspace.relatedFiles(syntax.path).flatMap(file => {
			const lines = workspace.syntaxOf(file)?.lines ?? [];
			return lines.map(({ words: [first] }) => first?.text);
		}),
	);
	let name = 'extracted';
	for (let number = 2; usedNames.has(`(${name})`); number++) name = `extracted${number}`;
	return name;
}
