/** Remembers which files a request looked for. */
import type { DryRunEnvironment } from '../dry-run/dry-run.ts';
import { FileError, type FileReader, type LeaseKinds } from '../exchange/leases.ts';

/** Maximum entries of a folder that are read to find examples. */
const MAX_ENTRIES = 200;
/** Maximum examples of files in a folder, each with another extension. */
const MAX_EXAMPLES = 3;

/**
 * Records lookups of files. A file that does not exist on this machine may exist on the server, so different lookups count as a
 * difference.
 */
export class RecordedFiles {
	/** The last path that was looked for since the last {@link reset}; undefined if there was none. */
	last: string | undefined;
	/**
	 * The folders in which files were looked for since the last {@link reset}, and the first path that was looked for in each
	 * folder.
	 */
	readonly roots = new Map<string, string>();
	readonly #examples = new Map<string, Promise<readonly string[]>>();
	#reader: FileReader | undefined;

	reset(): void {
		this.last = undefined;
		this.roots.clear();
	}

	/** Returns the names of existing files in a folder and of one of its folders, without those that are usually hidden. */
	examplesIn(root: string): Promise<readonly string[]> {
		const known = this.#examples.get(root) ?? this.#readExamples(root);
		this.#examples.set(root, known);
		return known;
	}

	async #readExamples(root: string): Promise<readonly string[]> {
		try {
			const { entries } = (await this.#reader?.entries(root, '/', false, MAX_ENTRIES)) ?? { entries: [] };
			const shown = entries.filter(({ name }) => !name.startsWith('.'));
			const namesOf = (wanted: 'file' | 'directory'): string[] =>
				shown.flatMap(({ name, type }) => (type === wanted ? name : [])).sort();
			const byExtension = Map.groupBy(namesOf('file'), name => /\.\w+$/.exec(name)?.[0]);
			const files = [...byExtension.values()].map(([first]) => first!).slice(0, MAX_EXAMPLES);
			return [...files, ...namesOf('directory').slice(0, 1)];
		} catch (error) {
			if (error instanceof FileError) return [];
			throw error;
		}
	}

	/** Returns dependencies with a file reader that records its lookups. */
	in(deps: DryRunEnvironment): DryRunEnvironment {
		return {
			...deps,
			lease: <K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) => {
				const lease = deps.lease(kind, settings);
				return kind === 'files' && lease ? (this.#recorded(lease as FileReader) as LeaseKinds[K]['lease']) : lease;
			},
		};
	}

	#recorded(reader: FileReader): FileReader {
		this.#reader = reader;
		const seen = (root: string, path: string): void => {
			if (!this.roots.has(root)) this.roots.set(root, path);
			this.last = root.endsWith('/') ? root.slice(0, -1) + path : root + path;
		};
		return {
			open(root, path, followSymlinks) {
				seen(root, path);
				return reader.open(root, path, followSymlinks);
			},
			kind(root, path, followSymlinks) {
				seen(root, path);
				return reader.kind(root, path, followSymlinks);
			},
			stat(root, path, followSymlinks) {
				seen(root, path);
				return reader.stat(root, path, followSymlinks);
			},
			list: (...args) => reader.list(...args),
			entries: (...args) => reader.entries(...args),
			readStart: (...args) => reader.readStart(...args),
			...(reader.realPath && { realPath: (path: string) => reader.realPath!(path) }),
		};
	}
}
