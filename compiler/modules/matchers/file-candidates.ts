/** Compiles the `file` matcher: expands the entries of its list to candidates below a root, and selects one of them by a policy. */
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

/** A normalized path that may be selected. `remainder` is the part of the path after a split extension. */
interface Candidate {
	readonly path: string;
	readonly remainder: string;
	/** True if the path must be a folder, false if it must not be a folder. */
	readonly mustBeFolder: boolean;
}

/** An entry of the matcher's list: a path, or the status of an error. */
type FileEntry = { readonly status: number } | PathEntry;

/**
 * An entry that names a path. If the configured text ends with a slash, only folders match. A trailing slash from a placeholder has
 * this effect only with `slashes: 'rendered'`; otherwise, an entry `{path}` would select a folder before `{path}/index.php` is
 * tried.
 */
interface PathEntry {
	readonly pathTemplate: Template;
	readonly folderRule: boolean | 'as-rendered';
}

/** Maximum number of candidates from the globs of one entry. */
const MAX_GLOB_CANDIDATES = 10_000;

/** The file that the matcher tries if its list is empty. */
export const REQUEST_PATH_PLACEHOLDER = '{http.request.uri.path}';
const DEFAULT_FILE_SYSTEM = 'default';

/** Compiles the matcher to a predicate that stores the selected file for `{http.matchers.file.*}`. */
export function compileFileMatcher(matcher: FileMatcher, cx: CompileContext): Predicate {
	const reader = cx.lease('files', {});
	const rootOf = compileRoot(matcher.root, cx);
	const countsRenderedSlashes = matcher.files === undefined || matcher.slashes === 'rendered';
	const entries = (matcher.files ?? [REQUEST_PATH_PLACEHOLDER]).map(text =>
		compileEntry(text, countsRenderedSlashes, cx),
	);
	const { split_path: splitExtensions = [], policy = 'first_exist' } = matcher;
	const candidatesOf = (x: Exchange, root: string, { pathTemplate, folderRule }: PathEntry) =>
		expandEntry(reader, root, pathTemplate.constant ?? pathTemplate.render(x), splitExtensions, folderRule);
	const selectFile = policy.startsWith('first_exist')
		? createFirstSelector(reader, entries, policy, candidatesOf)
		: createBestSelector(
				reader,
				entries,
				IS_BETTER_BY_POLICY[policy as keyof typeof IS_BETTER_BY_POLICY],
				candidatesOf,
			);
	return x => {
		const fileSystem = x.variable('fs');
		if (fileSystem !== undefined && fileSystem !== DEFAULT_FILE_SYSTEM && fileSystem !== '') return false;
		const root = rootOf(x);
		const selectedFile = selectFile(x, root);
		if (!selectedFile) return false;
		const { path, remainder } = selectedFile.candidate;
		const fileMatch: FileMatch = {
			relative: path,
			absolute: root === '/' ? path : root + path,
			type: selectedFile.facts?.type ?? 'file',
			remainder,
		};
		x.variables.set(FILE_MATCH_VARIABLE, fileMatch);
		return true;
	};
}

function compileEntry(text: string, countsRenderedSlashes: boolean, cx: CompileContext): FileEntry {
	if (/^=\d{3}$/.test(text)) {
		const status = Number(text.slice(1));
		if (status < 200) return cx.refuse(`\`${text}\` is not an error status.`, 'file/bad-status');
		return { status };
	}
	// Text in the configuration may be a glob, but request data is literal.
	return {
		pathTemplate: cx.template(text, 'empty', () => escapeGlob),
		folderRule: countsRenderedSlashes ? 'as-rendered' : text.endsWith('/'),
	};
}

interface SelectedFile {
	readonly candidate: Candidate;
	/** Undefined if the policy selected a candidate of the last entry without checking its type. It is then treated as a file. */
	readonly facts: FileFacts | undefined;
}

type FileSelector = (x: Exchange, root: string) => SelectedFile | undefined;
type CandidatesOf = (x: Exchange, root: string, entry: PathEntry) => readonly Candidate[];

function createFirstSelector(
	reader: FileReader,
	entries: readonly FileEntry[],
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
					if (lastMayBeAnything && candidateExists(reader, root, candidate)) return { candidate, facts: undefined };
				}
				const facts = factsOfRequiredType(reader, root, candidate);
				if (facts) return { candidate, facts };
			}
		}
		return undefined;
	};
}

/** Comparisons by policy. Each reports whether candidate `b` is better than candidate `a`. */
const IS_BETTER_BY_POLICY = {
	smallest_size: (a: FileFacts, b: FileFacts) => b.size < a.size,
	largest_size: (a: FileFacts, b: FileFacts) => b.size > a.size,
	most_recently_modified: (a: FileFacts, b: FileFacts) => b.mtimeNs > a.mtimeNs,
};

function createBestSelector(
	reader: FileReader,
	entries: readonly FileEntry[],
	isBetter: (a: FileFacts, b: FileFacts) => boolean,
	candidatesOf: CandidatesOf,
): FileSelector {
	return (x, root) => {
		let bestFile: { candidate: Candidate; facts: FileFacts } | undefined;
		for (const entry of entries) {
			if ('status' in entry) continue;
			for (const candidate of candidatesOf(x, root, entry)) {
				const facts = reader.stat(root, withoutTrailingSlash(candidate.path), false);
				if (facts && (!bestFile || isBetter(bestFile.facts, facts))) bestFile = { candidate, facts };
			}
		}
		return bestFile;
	};
}

/** Returns the facts about a candidate if it exists and is a folder or not, as `mustBeFolder` requires; otherwise undefined. */
function factsOfRequiredType(
	reader: FileReader,
	root: string,
	{ path, mustBeFolder }: Candidate,
): FileFacts | undefined {
	const facts = reader.stat(root, withoutTrailingSlash(path), false);
	return facts && (facts.type === 'directory') === mustBeFolder ? facts : undefined;
}

/** Reports whether a candidate exists, and is a folder if a folder is required. */
function candidateExists(reader: FileReader, root: string, { path, mustBeFolder }: Candidate): boolean {
	const facts = reader.stat(root, withoutTrailingSlash(path), false);
	return facts !== undefined && (!mustBeFolder || facts.type === 'directory');
}

function withoutTrailingSlash(path: string): string {
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Returns the candidates of one entry: the paths that match its globs. */
function expandEntry(
	reader: FileReader,
	root: string,
	renderedPath: string,
	splitExtensions: readonly string[],
	folderRule: PathEntry['folderRule'],
): readonly Candidate[] {
	const cleanPath = cleanDecodedPath(renderedPath.startsWith('/') ? renderedPath : `/${renderedPath}`, true);
	const mustBeFolder = folderRule === 'as-rendered' ? cleanPath.endsWith('/') : folderRule;
	const pathWithoutSlash = withoutTrailingSlash(cleanPath);
	const candidatePath = mustBeFolder && !pathWithoutSlash.endsWith('/') ? `${pathWithoutSlash}/` : pathWithoutSlash;
	const splitEnd = splitExtensions.length === 0 ? candidatePath.length : splitPosition(candidatePath, splitExtensions);
	const remainder = removeEscapes(candidatePath.slice(splitEnd));
	const pattern = candidatePath.slice(0, splitEnd);
	if (!/[*?[\\]/.test(pattern)) return [{ path: pattern, remainder, mustBeFolder }];
	return expandGlob(reader, root, pattern).map(path => ({ path, remainder, mustBeFolder }));
}

/** Returns the position after the first extension that ends a segment; the length of the path if there is none. */
function splitPosition(path: string, splitExtensions: readonly string[]): number {
	const lowerPath = path.toLowerCase();
	// If the lower-case path has a different length, positions in it are not positions in the path, so the path itself is searched.
	const searchedPath = lowerPath.length === path.length ? lowerPath : path;
	for (const split of splitExtensions) {
		const extension = split.toLowerCase();
		for (
			let position = searchedPath.indexOf(extension);
			position !== -1;
			position = searchedPath.indexOf(extension, position + 1)
		) {
			const extensionEnd = position + extension.length;
			if (extensionEnd === path.length || path[extensionEnd] === '/') return extensionEnd;
		}
	}
	return path.length;
}

/** Returns the paths that match a pattern, sorted by name. */
function expandGlob(reader: FileReader, root: string, pattern: string): string[] {
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
				if (nextPaths.length < MAX_GLOB_CANDIDATES && matchesSegment(name)) nextPaths.push(`${path}/${name}`);
			}
		}
		paths = nextPaths;
	}
	return paths;
}

/** Replaces each escaped character, such as `\*`, by the character itself. */
function removeEscapes(text: string): string {
	return text.includes('\\') ? text.replace(/\\(.)/gs, '$1') : text;
}
