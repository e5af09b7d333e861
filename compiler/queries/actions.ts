/** Code actions: fixes of findings, comments that silence them, and conversions of the text. */
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

/** Something that an editor offers to do. */
export interface Action {
	readonly title: string;
	readonly kind: 'fix' | 'fix-all' | 'silence' | 'extract' | 'inline';
	readonly edits: readonly FileEdit[];
	/** The finding that it resolves. */
	readonly finding?: Diagnostic;
	/** True if it is what most people would choose. */
	readonly preferred?: boolean;
}

/** Returns what can be done about the findings in a range, and with the text in it. `findings` are those of the file. */
export function actionsAt(
	workspace: Workspace,
	syntax: TextSyntax,
	range: TextRange,
	findings: readonly Diagnostic[],
): Action[] {
	const here = findings.filter(({ span }) => span && span.start <= range.end && span.end >= range.start);
	return [
		...here.flatMap(finding => fixes(finding)),
		...allFixes(here, findings),
		...here.flatMap(finding => silence(syntax, finding)),
		...inlinedConstant(workspace, syntax, range.start),
		...(range.end > range.start ? extractedSnippet(workspace, syntax, range) : []),
	];
}

/** Returns the edits of all safe fixes in a file, for fixing on save. */
export function safeFixes(findings: readonly Diagnostic[]): FileEdit[] {
	return together(findings.filter(({ fix }) => fix?.safety === 'safe'));
}

function fixes(finding: Diagnostic): Action[] {
	const { fix } = finding;
	if (!fix || fix.edits.length === 0) return [];
	return [{ title: titleOf(fix, finding), kind: 'fix', edits: editsOf(fix), finding, preferred: true }];
}

function titleOf({ edits }: Fix, { code }: Diagnostic): string {
	const [edit, more] = edits;
	if (!edit || more) return `Fix ${code}`;
	const { source, start, end } = edit.span;
	const before = oneLine(source.text.slice(start, end));
	const after = oneLine(edit.text);
	if (before === undefined || after === undefined) return `Fix ${code}`;
	if (after === '') return `Remove \`${before}\``;
	return before === '' ? `Insert \`${after}\`` : `Change \`${before}\` to \`${after}\``;
}

/** Returns a text that fits in a title, without the white space around it. */
function oneLine(text: string): string | undefined {
	const trimmed = text.trim();
	return trimmed.length <= 60 && !trimmed.includes('\n') ? trimmed : undefined;
}

/** For each rule with several fixes in the file, the action that applies all of them. */
function allFixes(here: readonly Diagnostic[], findings: readonly Diagnostic[]): Action[] {
	const codes = new Set(here.flatMap(({ code, fix }) => (fix ? code : [])));
	return [...codes].flatMap(code => {
		const same = findings.filter(one => one.code === code && one.fix);
		if (same.length < 2) return [];
		return [
			{
				title: `Fix all ${same.length} findings of ${code} in this file`,
				kind: 'fix-all' as const,
				edits: together(same),
			},
		];
	});
}

function editsOf({ edits }: Fix): FileEdit[] {
	return edits.flatMap(({ span: { source, start, end }, text }): FileEdit[] => {
		const { path } = source;
		if (path === undefined) return [];
		// An edit of the whole text is its formatting. Smaller edits leave an editor's cursor and marks in place.
		const isWhole = start === 0 && end === source.text.length && text === formatText(source.text);
		return isWhole ? formattingEdits(source.text).map(edit => ({ path, ...edit })) : [{ path, start, end, text }];
	});
}

/** Returns the edits of several fixes. Of fixes that overlap, only the first one is applied. */
function together(findings: readonly Diagnostic[]): FileEdit[] {
	const taken: FileEdit[] = [];
	for (const { fix } of findings) {
		const edits = fix ? editsOf(fix) : [];
		const overlaps = edits.some(edit =>
			taken.some(other => other.path === edit.path && edit.start < other.end && other.start < edit.end),
		);
		const repeats = edits.some(edit =>
			taken.some(other => other.path === edit.path && other.start === edit.start && other.end === edit.end),
		);
		if (!overlaps && !repeats) taken.push(...edits);
	}
	return taken;
}

/** Returns the action that inserts `# lint: off RULE` above the line of a finding. */
function silence(syntax: TextSyntax, finding: Diagnostic): Action[] {
	const { code, severity, span } = finding;
	if (severity === 'error' || !span) return [];
	const { text, path } = syntax;
	const start = text.lastIndexOf('\n', span.start - 1) + 1;
	const isFree = !/\\\r?\n$/.test(text.slice(0, start)) && !insideWord(syntax, start);
	if (!isFree) return [];
	const above = /(?:^|\n)[ \t]*# lint: off((?: [\w/*-]+)*)[ \t]*\n$/.exec(text.slice(0, start));
	const indent = /^[ \t]*/.exec(text.slice(start))![0];
	const edit = above?.[1]
		? { path, start: start - 1, end: start - 1, text: ` ${code}` }
		: { path, start, end: start, text: `${indent}# lint: off ${code}\n` };
	return [{ title: `Silence ${code} here`, kind: 'silence', edits: [edit], finding }];
}

function insideWord({ lines }: TextSyntax, offset: number): boolean {
	for (const { line } of everyLine(lines)) {
		if (line.words.some(({ span }) => span.start < offset && offset <= span.end)) return true;
	}
	return false;
}

/** Returns the action that replaces a constant by its value everywhere and removes its definition. */
function inlinedConstant(workspace: Workspace, syntax: TextSyntax, offset: number): Action[] {
	const uses = occurrencesAt(workspace, syntax, offset);
	const definitions = uses.filter(({ role }) => role === 'definition');
	const [definition] = definitions;
	if (definition?.kind !== 'let' || definitions.length > 1) return [];
	const from = workspace.syntax(definition.path)!;
	const values = definition.line.words.slice(2);
	if (values.length === 0) return [];
	const written = from.text.slice(values[0]!.span.start, values.at(-1)!.span.end);
	const isPlain = values.length === 1 && values[0]!.quote === 'none' && values[0]!.text === written;
	const edits: FileEdit[] = [];
	for (const use of uses) {
		if (use.role === 'definition') continue;
		const { text } = workspace.syntax(use.path)!;
		const range = { start: use.start - '{let.'.length, end: use.end + 1 };
		const alone = use.line.words.some(
			({ span, quote }) => quote === 'none' && span.start === range.start && span.end === range.end,
		);
		// In the middle of a word, only one plain value can take its place.
		if ((!alone && !isPlain) || text[range.end - 1] !== '}') return [];
		edits.push({ path: use.path, ...range, text: written });
	}
	edits.push({ path: definition.path, ...wholeLines(from.text, rangeOfLine(definition.line)), text: '' });
	return [{ title: `Inline \`${definition.name}\``, kind: 'inline', edits }];
}

/** Extends a range to whole lines, including the last newline. */
function wholeLines(text: string, { start, end }: TextRange): TextRange {
	const newline = text.indexOf('\n', end);
	return { start: text.lastIndexOf('\n', start - 1) + 1, end: newline === -1 ? text.length : newline + 1 };
}

/** Returns the action that moves the selected lines of a site to a snippet. */
function extractedSnippet(workspace: Workspace, syntax: TextSyntax, selected: TextRange): Action[] {
	const { text, path, dialect } = syntax;
	const trimmed = {
		start: selected.start + /^\s*/.exec(text.slice(selected.start, selected.end))![0].length,
		end: selected.end - /\s*$/.exec(text.slice(selected.start, selected.end))![0].length,
	};
	if (trimmed.end <= trimmed.start) return [];
	const { around } = placeAt(syntax, trimmed.start);
	const [top] = around;
	const inner = around.at(-1)?.block;
	if (!top || !inner) return [];
	const kind = kindOfTopLevel(top, dialect, registryOf(dialect).directives);
	if (kind !== 'site' && kind !== 'route') return [];
	const lines = inner.lines.filter(line => touches(rangeOfLine(line), trimmed));
	const isWhole =
		lines.length > 0 && lines.every(line => line.alternative === undefined || touches(rangeOfLine(line), trimmed));
	if (!isWhole || lines.some(({ words: [first] }) => first?.text === 'let')) return [];
	const moved = wholeLines(text, { start: rangeOfLine(lines[0]!).start, end: endOf(lines.at(-1)!) });
	if (moved.start < inner.open.end || moved.end > inner.close.start) return [];
	const name = freeName(workspace, syntax);
	const indent = /^[ \t]*/.exec(text.slice(moved.start))![0];
	const body = text
		.slice(moved.start, moved.end)
		.split('\n')
		.map(line => (line.startsWith(indent) ? `\t${line.slice(indent.length)}` : line))
		.join('\n')
		.replace(/\t$/, '');
	const at = wholeLines(text, rangeOfLine(top)).start;
	return [
		{
			title: `Extract to the snippet \`${name}\``,
			kind: 'extract',
			edits: [
				{ path, start: at, end: at, text: `(${name}) {\n${body}}\n\n` },
				{ path, ...moved, text: `${indent}${dialect === 'configfile' ? 'use' : 'import'} ${name}\n` },
			],
		},
	];
}

function touches(one: TextRange, other: TextRange): boolean {
	return one.start < other.end && other.start < one.end;
}

function endOf(line: ParsedLine): number {
	return line.alternative ? endOf(line.alternative) : rangeOfLine(line).end;
}

function freeName(workspace: Workspace, syntax: TextSyntax): string {
	const taken = new Set(
		workspace.related(syntax.path).flatMap(file => {
			const lines = workspace.syntax(file)?.lines ?? [];
			return lines.map(({ words: [first] }) => first?.text);
		}),
	);
	let name = 'extracted';
	for (let number = 2; taken.has(`(${name})`); number++) name = `extracted${number}`;
	return name;
}
