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
	/** True if it must be a folder, false if it must not be one. */
	readonly folder: boolean;
}

/** An entry of the list: a file, or the status of an error. */
type Entry = { readonly status: number } | PathEntry;

/**
 * An entry that names a path. With a trailing slash in the configured text, it matches only folders. A slash from a placeholder
 * has that effect only if so configured; otherwise an entry `{path}` would select the folder before `{path}/index.php` is tried.
 */
interface PathEntry {
	readonly text: Template;
	readonly folder: boolean | 'as-rendered';
}

/** Maximum candidates from the globs of one entry. */
const MAX_CANDIDATES = 10_000;

/** The file that the matcher tries if none is named. */
export const REQUEST_PATH_PLACEHOLDER = '{http.request.uri.path}';
const DEFAULT_FILE_SYSTEM = 'default';

/** Compiles the matcher to a predicate that stores the selected file for `{http.matchers.file.*}`. */
export function compileFileMatcher(matcher: FileMatcher, cx: CompileContext): Predicate {
	const reader = cx.lease('files', {});
	const rootOf = compileRoot(matcher.root, cx);
	const rendered = matcher.files === undefined || matcher.slashes === 'rendered';
	const entries = (matcher.files ?? [REQUEST_PATH_PLACEHOLDER]).map(text => compileEntry(text, rendered, cx));
	const { split_path: splits = [], policy = 'first_exist' } = matcher;
	const candidatesOf = (x: Exchange, root: string, { text, folder }: PathEntry) =>
		candidates(reader, root, text.constant ?? text.render(x), splits, folder);
	const choose = policy.startsWith('first_exist')
		? firstThere(reader, entries, policy, candidatesOf)
		: bestOfAll(reader, entries, BETTER[policy as keyof typeof BETTER], candidatesOf);
	return x => {
		const fileSystem = x.variable('fs');
		if (fileSystem !== undefined && fileSystem !== DEFAULT_FILE_SYSTEM && fileSystem !== '') return false;
		const root = rootOf(x);
		const found = choose(x, root);
		if (!found) return false;
		const { path, remainder } = found.candidate;
		const match: FileMatch = {
			relative: path,
			absolute: root === '/' ? path : root + path,
			type: found.facts?.type ?? 'file',
			remainder,
		};
		x.variables.set(FILE_MATCH_VARIABLE, match);
		return true;
	};
}

function compileEntry(text: string, rendered: boolean, cx: CompileContext): Entry {
	if (/^=\d{3}$/.test(text)) {
		const status = Number(text.slice(1));
		if (status < 200) return cx.refuse(`\`${text}\` is not an error status.`, 'file/bad-status');
		return { status };
	}
	// Text in the configuration may be a glob, but request data is literal.
	return { text: cx.template(text, 'empty', () => escapeGlob), folder: rendered ? 'as-rendered' : text.endsWith('/') };
}

interface Found {
	readonly candidate: Candidate;
	/** Undefined if the policy does not check the last candidate, which then counts as a file. */
	readonly facts: FileFacts | undefined;
}

type Choice = (x: Exchange, root: string) => Found | undefined;
type CandidatesOf = (x: Exchange, root: string, entry: PathEntry) => readonly Candidate[];

function firstThere(reader: FileReader, entries: readonly Entry[], policy: string, candidatesOf: CandidatesOf): Choice {
	const blind = policy === 'first_exist_fallback';
	const any = policy === 'first_exist_last_any';
	return (x, root) => {
		for (let i = 0; i < entries.length; i++) {
			const entry = entries[i]!;
			if ('status' in entry) throw new HttpError(entry.status, 'file: none of the files exists');
			for (const candidate of candidatesOf(x, root, entry)) {
				if (i === entries.length - 1) {
					if (blind) return { candidate, facts: undefined };
					if (any && isThere(reader, root, candidate)) return { candidate, facts: undefined };
				}
				const facts = strictly(reader, root, candidate);
				if (facts) return { candidate, facts };
			}
		}
		return undefined;
	};
}

/** Comparisons by policy: each reports whether the second candidate is better than the first. */
const BETTER = {
	smallest_size: (a: FileFacts, b: FileFacts) => b.size < a.size,
	largest_size: (a: FileFacts, b: FileFacts) => b.size > a.size,
	most_recently_modified: (a: FileFacts, b: FileFacts) => b.mtimeNs > a.mtimeNs,
};

function bestOfAll(
	reader: FileReader,
	entries: readonly Entry[],
	better: (a: FileFacts, b: FileFacts) => boolean,
	candidatesOf: CandidatesOf,
): Choice {
	return (x, root) => {
		let best: { candidate: Candidate; facts: FileFacts } | undefined;
		for (const entry of entries) {
			if ('status' in entry) continue;
			for (const candidate of candidatesOf(x, root, entry)) {
				const facts = reader.stat(root, lookupPath(candidate.path), false);
				if (facts && (!best || better(best.facts, facts))) best = { candidate, facts };
			}
		}
		return best;
	};
}

/** Returns the facts about a candidate if it exists, and if it is a folder or not, as required. */
function strictly(reader: FileReader, root: string, { path, folder }: Candidate): FileFacts | undefined {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts && (facts.type === 'directory') === folder ? facts : undefined;
}

/** Reports whether a candidate exists: as a folder if required, otherwise as anything. */
function isThere(reader: FileReader, root: string, { path, folder }: Candidate): boolean {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts !== undefined && (!folder || facts.type === 'directory');
}

function lookupPath(path: string): string {
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Returns the candidates of one rendered entry, with globs expanded. */
function candidates(
	reader: FileReader,
	root: string,
	rendered: string,
	splits: readonly string[],
	asked: PathEntry['folder'],
): readonly Candidate[] {
	const cleaned = cleanDecodedPath(rendered.startsWith('/') ? rendered : `/${rendered}`, true);
	const folder = asked === 'as-rendered' ? cleaned.endsWith('/') : asked;
	const bare = lookupPath(cleaned);
	const clean = folder && !bare.endsWith('/') ? `${bare}/` : bare;
	const cut = splits.length === 0 ? clean.length : splitPosition(clean, splits);
	const remainder = unescaped(clean.slice(cut));
	const pattern = clean.slice(0, cut);
	if (!/[*?[\\]/.test(pattern)) return [{ path: pattern, remainder, folder }];
	return expand(reader, root, pattern).map(path => ({ path, remainder, folder }));
}

/** Returns the position after the first extension that ends a segment; the length of the path if there is none. */
function splitPosition(path: string, splits: readonly string[]): number {
	const lower = path.toLowerCase();
	// If lower case changes the length of the path, positions in it would be wrong, so the path is searched as it is.
	const subject = lower.length === path.length ? lower : path;
	for (const split of splits) {
		const wanted = split.toLowerCase();
		for (let at = subject.indexOf(wanted); at !== -1; at = subject.indexOf(wanted, at + 1)) {
			const end = at + wanted.length;
			if (end === path.length || path[end] === '/') return end;
		}
	}
	return path.length;
}

/** Returns the paths that match a pattern, sorted by name. */
function expand(reader: FileReader, root: string, pattern: string): string[] {
	let paths = [''];
	for (const segment of pattern.slice(1).split('/')) {
		const test = /(?:^|[^\\])(?:\\\\)*[*?[]/.test(segment) ? compileGlob(segment) : undefined;
		if (!test) {
			const name = unescaped(segment);
			paths = paths.map(path => `${path}/${name}`);
			continue;
		}
		const next: string[] = [];
		for (const path of paths) {
			for (const name of reader.list(root, path === '' ? '/' : path, false)) {
				if (next.length < MAX_CANDIDATES && test(name)) next.push(`${path}/${name}`);
			}
		}
		paths = next;
	}
	return paths;
}

/** Removes the backslashes of escapes. */
function unescaped(text: string): string {
	return text.includes('\\') ? text.replace(/\\(.)/gs, '$1') : text;
}
