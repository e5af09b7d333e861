/** Compiles the `file` matcher: expands entries to candidates below a root, from which a policy selects one. */
import { FILE_MATCH_VARIABLE, type FileMatch } from '../../codegen/context/captures.ts';
import { compileRoot } from '../../codegen/context/file-root.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { FileFacts, FileReader } from '../../exchange/leases.ts';
import { cleanDecodedPath } from '../../exchange/request-path.ts';
import type { CompileContext, Template } from '../contract/compile-context.ts';
import type { FileMatcher } from './file.ts';
import { compileGlob, escapeGlob } from './glob.ts';

/** A cleaned path to check. */
interface Candidate {
	readonly path: string;
	readonly remainder: string;
	/** True if the path must be a folder, false if it must not be a folder. */
	readonly mustBeFolder: boolean;
}

/** An entry of the matcher's list: a path, or the status of an error. */
type Entry = { readonly status: number } | PathEntry;

/**
 * An entry that names a path. A trailing slash in the configured text restricts it to folders. A slash from a placeholder
 * does so only with `slashes: 'rendered'`. Otherwise an entry `{path}` would select a folder before `{path}/index.php` is tried.
 */
interface PathEntry {
	readonly text: Template;
	readonly folderRule: boolean | 'as-rendered';
}

/** Maximum number of candidates from the globs of one entry. */
const MAX_CANDIDATES = 10_000;

/** The file that the matcher tries if none is named. */
export const REQUEST_PATH_PLACEHOLDER = '{http.request.uri.path}';
const DEFAULT_FILE_SYSTEM = 'default';

/** Compiles the matcher to a predicate that stores the selected file for `{http.matchers.file.*}`. */
export function compileFileMatcher(matcher: FileMatcher, cx: CompileContext): Predicate {
	const reader = cx.lease('files', {});
	const rootOf = compileRoot(matcher.root, cx);
	const renderedSlashes = matcher.files === undefined || matcher.slashes === 'rendered';
	const entries = (matcher.files ?? [REQUEST_PATH_PLACEHOLDER]).map(text => compileEntry(text, renderedSlashes, cx));
	const { split_path: splits = [], policy = 'first_exist' } = matcher;
	const candidatesOf = (x: Exchange, root: string, { text, folderRule }: PathEntry) =>
		expandEntry(reader, root, text.constant ?? text.render(x), splits, folderRule);
	const selectFile = policy.startsWith('first_exist')
		? selectFirst(reader, entries, policy, candidatesOf)
		: selectBest(reader, entries, BETTER_BY_POLICY[policy as keyof typeof BETTER_BY_POLICY], candidatesOf);
	return x => {
		const fileSystem = x.variable('fs');
		if (fileSystem !== undefined && fileSystem !== DEFAULT_FILE_SYSTEM && fileSystem !== '') return false;
		const root = rootOf(x);
		const selected = selectFile(x, root);
		if (!selected) return false;
		const { path, remainder } = selected.candidate;
		const match: FileMatch = {
			relative: path,
			absolute: root === '/' ? path : root + path,
			type: selected.facts?.type ?? 'file',
			remainder,
		};
		x.variables.set(FILE_MATCH_VARIABLE, match);
		return true;
	};
}

function compileEntry(text: string, renderedSlashes: boolean, cx: CompileContext): Entry {
	if (/^=\d{3}$/.test(text)) {
		const status = Number(text.slice(1));
		if (status < 200) return cx.refuse(`\`${text}\` is not an error status.`, 'file/bad-status');
		return { status };
	}
	// Text in the configuration may be a glob, but request data is literal.
	return {
		text: cx.template(text, 'empty', () => escapeGlob),
		folderRule: renderedSlashes ? 'as-rendered' : text.endsWith('/'),
	};
}

interface SelectedFile {
	readonly candidate: Candidate;
	/** Facts about the file. Undefined for a last candidate that the policy does not check; the candidate then counts as a file. */
	readonly facts: FileFacts | undefined;
}

type FileSelector = (x: Exchange, root: string) => SelectedFile | undefined;
type CandidatesOf = (x: Exchange, root: string, entry: PathEntry) => readonly Candidate[];

function selectFirst(
	reader: FileReader,
	entries: readonly Entry[],
	policy: string,
	candidatesOf: CandidatesOf,
): FileSelector {
	const skipsLastCheck = policy === 'first_exist_fallback';
	const lastMayBeAnything = policy === 'first_exist_last_any';
	return (x, root) => {
		for (let i = 0; i < entries.length; i++) {
			const entry = entries[i]!;
			if ('status' in entry) throw new HttpError(entry.status, 'file: none of the files exists');
			for (const candidate of candidatesOf(x, root, entry)) {
				if (i === entries.length - 1) {
					if (skipsLastCheck) return { candidate, facts: undefined };
					if (lastMayBeAnything && exists(reader, root, candidate)) return { candidate, facts: undefined };
				}
				const facts = factsOfRequiredType(reader, root, candidate);
				if (facts) return { candidate, facts };
			}
		}
		return undefined;
	};
}

/** Comparisons by policy: each reports whether the second candidate is better than the first. */
const BETTER_BY_POLICY = {
	smallest_size: (a: FileFacts, b: FileFacts) => b.size < a.size,
	largest_size: (a: FileFacts, b: FileFacts) => b.size > a.size,
	most_recently_modified: (a: FileFacts, b: FileFacts) => b.mtimeNs > a.mtimeNs,
};

function selectBest(
	reader: FileReader,
	entries: readonly Entry[],
	isBetter: (a: FileFacts, b: FileFacts) => boolean,
	candidatesOf: CandidatesOf,
): FileSelector {
	return (x, root) => {
		let bestFile: { candidate: Candidate; facts: FileFacts } | undefined;
		for (const entry of entries) {
			if ('status' in entry) continue;
			for (const candidate of candidatesOf(x, root, entry)) {
				const facts = reader.stat(root, lookupPath(candidate.path), false);
				if (facts && (!bestFile || isBetter(bestFile.facts, facts))) bestFile = { candidate, facts };
			}
		}
		return bestFile;
	};
}

/** Returns the facts about a candidate if it exists and has the required type. */
function factsOfRequiredType(
	reader: FileReader,
	root: string,
	{ path, mustBeFolder }: Candidate,
): FileFacts | undefined {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts && (facts.type === 'directory') === mustBeFolder ? facts : undefined;
}

/** Reports whether a candidate exists, and is a folder if a folder is required. */
function exists(reader: FileReader, root: string, { path, mustBeFolder }: Candidate): boolean {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts !== undefined && (!mustBeFolder || facts.type === 'directory');
}

function lookupPath(path: string): string {
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Returns the candidates of one rendered entry, with globs expanded. */
function expandEntry(
	reader: FileReader,
	root: string,
	renderedPath: string,
	splits: readonly string[],
	folderRule: PathEntry['folderRule'],
): readonly Candidate[] {
	const cleanPath = cleanDecodedPath(renderedPath.startsWith('/') ? renderedPath : `/${renderedPath}`, true);
	const mustBeFolder = folderRule === 'as-rendered' ? cleanPath.endsWith('/') : folderRule;
	const withoutSlash = lookupPath(cleanPath);
	const candidatePath = mustBeFolder && !withoutSlash.endsWith('/') ? `${withoutSlash}/` : withoutSlash;
	const cutPosition = splits.length === 0 ? candidatePath.length : splitPosition(candidatePath, splits);
	const remainder = removeEscapes(candidatePath.slice(cutPosition));
	const pattern = candidatePath.slice(0, cutPosition);
	if (!/[*?[\\]/.test(pattern)) return [{ path: pattern, remainder, mustBeFolder }];
	return expand(reader, root, pattern).map(path => ({ path, remainder, mustBeFolder }));
}

/** Returns the position after the first extension that ends a segment; the length of the path if there is none. */
function splitPosition(path: string, splits: readonly string[]): number {
	const lowerPath = path.toLowerCase();
	// If the lower-case path has a different length, positions in it would be wrong, so the original path is searched.
	const subject = lowerPath.length === path.length ? lowerPath : path;
	for (const split of splits) {
		const extension = split.toLowerCase();
		for (
			let position = subject.indexOf(extension);
			position !== -1;
			position = subject.indexOf(extension, position + 1)
		) {
			const end = position + extension.length;
			if (end === path.length || path[end] === '/') return end;
		}
	}
	return path.length;
}

/** Returns the paths that match a pattern, sorted by name. */
function expand(reader: FileReader, root: string, pattern: string): string[] {
	let paths = [''];
	for (const segment of pattern.slice(1).split('/')) {
		const matchesSegment = /(?:^|[^\\])(?:\\\\)*[*?[]/.test(segment) ? compileGlob(segment) : undefined;
		if (!matchesSegment) {
			const name = removeEscapes(segment);
			paths = paths.map(path => `${path}/${name}`);
			continue;
		}
		const nextPaths: string[] = [];
		for (const path of paths) {
			for (const name of reader.list(root, path === '' ? '/' : path, false)) {
				if (nextPaths.length < MAX_CANDIDATES && matchesSegment(name)) nextPaths.push(`${path}/${name}`);
			}
		}
		paths = nextPaths;
	}
	return paths;
}

/** Removes the backslashes of escapes. */
function removeEscapes(text: string): string {
	return text.includes('\\') ? text.replace(/\\(.)/gs, '$1') : text;
}
