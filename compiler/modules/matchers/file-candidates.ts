/** Compiles the `file` matcher: from entries to candidates below a root to the one that a policy takes. */
import { FILE_MATCH, type FileMatch } from '../../codegen/captures.ts';
import type { CompileContext, Template } from '../../codegen/compile-context.ts';
import { compileRoot } from '../../codegen/file-root.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { FileFacts, FileReader } from '../../exchange/leases.ts';
import { cleanPath } from '../../exchange/request-path.ts';
import type { FileMatcher } from './file.ts';
import { compileGlob, escapeGlob } from './glob.ts';

/** A path to look at, cleaned. */
interface Candidate {
	readonly path: string;
	readonly remainder: string;
	/** Whether it must be a folder; anything but a folder otherwise. */
	readonly folder: boolean;
}

/** An entry of the list: a file, or the status of an error. */
type Entry = { readonly status: number } | PathEntry;

/**
 * An entry that names a path. It asks for a folder by the slash that is written at its end. One that a placeholder brings
 * counts only where that is said, or `{path}` would take the folder from the `{path}/index.php` behind it.
 */
interface PathEntry {
	readonly text: Template;
	readonly folder: boolean | 'as-rendered';
}

/** Candidates that the globs of one entry may give. */
const MOST_CANDIDATES = 10_000;

/** What the matcher tries when no file is named. */
export const REQUEST_PATH = '{http.request.uri.path}';
const DEFAULT_FILE_SYSTEM = 'default';

/** Compiles to a test that remembers what it found for `{http.matchers.file.*}`. */
export function compileFileMatcher(matcher: FileMatcher, cx: CompileContext): Predicate {
	const reader = cx.lease('files', {});
	const rootOf = compileRoot(matcher.root, cx);
	const rendered = matcher.files === undefined || matcher.slashes === 'rendered';
	const entries = (matcher.files ?? [REQUEST_PATH]).map(text => compileEntry(text, rendered, cx));
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
		x.variables.set(FILE_MATCH, match);
		return true;
	};
}

function compileEntry(text: string, rendered: boolean, cx: CompileContext): Entry {
	if (/^=\d{3}$/.test(text)) {
		const status = Number(text.slice(1));
		if (status < 200) return cx.refuse(`\`${text}\` is not an error status.`, 'file/bad-status');
		return { status };
	}
	// What stands in the configuration may be a glob, what a request brings is text.
	return { text: cx.template(text, 'empty', () => escapeGlob), folder: rendered ? 'as-rendered' : text.endsWith('/') };
}

interface Found {
	readonly candidate: Candidate;
	/** Nothing for the last one of a policy that does not mind what it is: it counts as a file. */
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
			if ('status' in entry) throw new HttpError(entry.status, 'file: none of the files is there');
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

/** Whether the second is to be taken instead of the first. */
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

/** What is there, if it is a folder where one is asked for and none where not. */
function strictly(reader: FileReader, root: string, { path, folder }: Candidate): FileFacts | undefined {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts && (facts.type === 'directory') === folder ? facts : undefined;
}

/** Whether anything is there: a folder where one is asked for, or what it may be where not. */
function isThere(reader: FileReader, root: string, { path, folder }: Candidate): boolean {
	const facts = reader.stat(root, lookupPath(path), false);
	return facts !== undefined && (!folder || facts.type === 'directory');
}

function lookupPath(path: string): string {
	return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The candidates of one rendered entry, globs expanded. */
function candidates(
	reader: FileReader,
	root: string,
	rendered: string,
	splits: readonly string[],
	asked: PathEntry['folder'],
): readonly Candidate[] {
	const cleaned = cleanPath(rendered.startsWith('/') ? rendered : `/${rendered}`, true);
	const folder = asked === 'as-rendered' ? cleaned.endsWith('/') : asked;
	const bare = lookupPath(cleaned);
	const clean = folder && !bare.endsWith('/') ? `${bare}/` : bare;
	const cut = splits.length === 0 ? clean.length : splitPosition(clean, splits);
	const remainder = unescaped(clean.slice(cut));
	const pattern = clean.slice(0, cut);
	if (!/[*?[\\]/.test(pattern)) return [{ path: pattern, remainder, folder }];
	return expand(reader, root, pattern).map(path => ({ path, remainder, folder }));
}

/** Behind the first of the ends that stands at the end of a segment; the whole length when there is none. */
function splitPosition(path: string, splits: readonly string[]): number {
	const lower = path.toLowerCase();
	// Letters that change their length in lower case would shift the position.
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

/** The paths that a pattern stands for, in the order of their names. */
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
				if (next.length < MOST_CANDIDATES && test(name)) next.push(`${path}/${name}`);
			}
		}
		paths = next;
	}
	return paths;
}

/** The text without the backslashes that escape. */
function unescaped(text: string): string {
	return text.includes('\\') ? text.replace(/\\(.)/gs, '$1') : text;
}
