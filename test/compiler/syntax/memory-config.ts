/** In-memory configurations for the syntax tests: files in an imaginary folder, and syntax trees as plain text. */
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../../../compiler/diagnostics/sort-diagnostics.ts';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';
import type { ConfigTree, Line, Word } from '../../../compiler/syntax/ast.ts';
import { parseConfig } from '../../../compiler/syntax/parse-config.ts';

const FOLDER = '/config';
const DIRECTIVES = new Set([
	'respond',
	'handle',
	'header',
	'file_server',
	'reverse_proxy',
	'redir',
	'root',
	'log',
	'when',
]);

/** The texts of a configuration's files, by name relative to the folder. The file `main` is the main file. */
export interface MemoryFiles {
	readonly main: string;
	readonly [path: string]: string;
}

/** Returns a reader over `files`, with the environment `env`. */
export function memoryReader(files: MemoryFiles, env: { readonly [name: string]: string } = {}): Reader {
	const contents = new Map(Object.entries(files).map(([name, text]) => [`${FOLDER}/${name}`, text]));
	const names = (path: string): string[] => {
		const inside = [...contents.keys()].filter(file => file.startsWith(`${path}/`));
		return [...new Set(inside.map(file => file.slice(path.length + 1).split('/')[0]!))].sort();
	};
	return {
		readText: path => {
			const text = contents.get(path);
			if (text === undefined) throw new ReadError('ENOENT', path);
			return text;
		},
		readBytes: path => {
			throw new ReadError('ENOENT', path);
		},
		list: names,
		kind: path => (contents.has(path) ? 'file' : names(path).length > 0 ? 'directory' : undefined),
		env: name => env[name],
		workingDirectory: FOLDER,
	};
}

/** The result of {@link parseInMemory}. */
export interface ParseOutcome {
	readonly tree: ConfigTree;
	readonly diagnostics: readonly Diagnostic[];
	/** The syntax tree as printed by {@link outlineFile}. */
	readonly outline: string;
	/** The place of each diagnostic as `severity code FILE:LINE:COLUMN`, sorted. */
	readonly places: readonly string[];
	/** The messages of the diagnostics, sorted by place. */
	readonly messages: readonly string[];
}

/** Parses one main file, given as text, or several files. */
export function parseInMemory(
	input: string | MemoryFiles,
	dialect: Dialect = 'configfile',
	env: { readonly [name: string]: string } = {},
): ParseOutcome {
	const files = typeof input === 'string' ? { main: input } : input;
	const found: Diagnostic[] = [];
	const tree = parseConfig(
		{ format: dialect, text: files.main, name: 'main', path: `${FOLDER}/main` },
		memoryReader(files, env),
		diagnostic => found.push(diagnostic),
		{ knownDirectives: DIRECTIVES },
	);
	const diagnostics = sortDiagnostics(found);
	return {
		tree,
		diagnostics,
		get outline() {
			return outlineFile(tree);
		},
		places: diagnostics.map(({ severity, code, span }) => {
			if (!span) return `${severity} ${code}`;
			const { line, column } = span.source.position(span.start);
			return `${severity} ${code} ${span.source.name}:${line}:${column}`;
		}),
		messages: diagnostics.map(({ message }) => message),
	};
}

/**
 * Returns a tree as text, with one line of output for each line of the configuration. Quoted words keep their quotes; heredocs
 * are in `<…>`.
 */
export function outlineFile(tree: ConfigTree): string {
	let text = '';
	if (tree.options) text += `options\n${outlineLines(tree.options.lines, 1)}`;
	for (const { name, lines } of tree.namedRoutes) text += `route ${name.text}\n${outlineLines(lines, 1)}`;
	for (const { name, lines } of tree.upstreams) text += `upstream ${name.text}\n${outlineLines(lines, 1)}`;
	for (const { name, lines } of tree.tests) text += `test ${name.text}\n${outlineLines(lines, 1)}`;
	for (const { addresses, lines } of tree.sites) {
		text += `site ${addresses.map(({ text }) => text).join(' ')}\n${outlineLines(lines, 1)}`;
	}
	return text;
}

/** Returns lines of a configuration as text, indented by one space per level. */
export function outlineLines(lines: readonly Line[], depth: number): string {
	return lines.map(line => `${' '.repeat(depth)}${outlineLine(line, depth)}\n`).join('');
}

function outlineLine(line: Line, depth: number): string {
	let text = line.words.map(outlineWord).join(' ');
	if (line.block) text += ` {\n${outlineLines(line.block.lines, depth + 1)}${' '.repeat(depth)}}`;
	if (line.alternative) text += ` ${outlineLine(line.alternative, depth)}`;
	return text;
}

function outlineWord({ text, quote }: Word): string {
	if (quote === 'none') return text;
	if (quote === 'heredoc') return `<${text}>`;
	return quote === 'double' ? `"${text}"` : `\`${text}\``;
}
