/** Records which files a request looks for. */
import type { DryRunEnvironment } from '../dry-run/dry-run.ts';
import { FileError, type FileReader, type LeaseKinds } from '../exchange/leases.ts';

/** Maximum entries of a folder that are read to find examples. */
const MAX_DIRECTORY_ENTRIES = 200;
/** Maximum example files of a folder. Each has a different extension. */
const MAX_EXAMPLE_FILES = 3;

/**
 * Records lookups of files. A file that does not exist on this machine may exist on the server, so it is a difference if two
 * configurations look up different files.
 */
export class RecordedFiles {
	/** The path of the last lookup since the last {@link reset}; undefined if there was none. */
	lastLookupPath: string | undefined;
	/** The path of the first lookup in each root folder since the last {@link reset}, by root. */
	readonly firstPathByRoot = new Map<string, string>();
	/** The root folders that cannot be listed on this machine. They may exist on the server. */
	readonly unreadableRoots = new Set<string>();
	readonly #examplesByRoot = new Map<string, Promise<readonly string[]>>();
	#reader: FileReader | undefined;

	reset(): void {
		this.lastLookupPath = undefined;
		this.firstPathByRoot.clear();
	}

	/** Returns the names of a few files and one subfolder in a folder. Leaves out names that start with a dot. */
	examplesIn(root: string): Promise<readonly string[]> {
		const examples = this.#examplesByRoot.get(root) ?? this.#readExamples(root);
		this.#examplesByRoot.set(root, examples);
		return examples;
	}

	async #readExamples(root: string): Promise<readonly string[]> {
		try {
			const { entries } = (await this.#reader?.entries(root, '/', false, MAX_DIRECTORY_ENTRIES)) ?? { entries: [] };
			const visibleEntries = entries.filter(({ name }) => !name.startsWith('.'));
			const namesOf = (wantedType: 'file' | 'directory'): string[] =>
				visibleEntries.flatMap(({ name, type }) => (type === wantedType ? name : [])).sort();
			const namesByExtension = Map.groupBy(namesOf('file'), name => /\.\w+$/.exec(name)?.[0]);
			const exampleFiles = [...namesByExtension.values()].map(([first]) => first!).slice(0, MAX_EXAMPLE_FILES);
			return [...exampleFiles, ...namesOf('directory').slice(0, 1)];
		} catch (error) {
			if (!(error instanceof FileError)) throw error;
			this.unreadableRoots.add(root);
			return [];
		}
	}

	/** Returns the dependencies with a file reader that records its lookups here. */
	recordingDeps(deps: DryRunEnvironment): DryRunEnvironment {
		return {
			...deps,
			lease: <K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) => {
				const lease = deps.lease(kind, settings);
				return kind === 'files' && lease
					? (this.#recordingReader(lease as FileReader) as LeaseKinds[K]['lease'])
					: lease;
			},
		};
	}

	#recordingReader(reader: FileReader): FileReader {
		this.#reader = reader;
		const recordLookup = (root: string, path: string): void => {
			if (!this.firstPathByRoot.has(root)) this.firstPathByRoot.set(root, path);
			this.lastLookupPath = root.endsWith('/') ? root.slice(0, -1) + path : root + path;
		};
		return {
			open(root, path, followSymlinks) {
				recordLookup(root, path);
				return reader.open(root, path, followSymlinks);
			},
			kind(root, path, followSymlinks) {
				recordLookup(root, path);
				return reader.kind(root, path, followSymlinks);
			},
			stat(root, path, followSymlinks) {
				recordLookup(root, path);
				return reader.stat(root, path, followSymlinks);
			},
			list: (...args) => reader.list(...args),
			entries: (...args) => reader.entries(...args),
			readStart: (...args) => reader.readStart(...args),
			...(reader.realPath && { realPath: (path: string) => reader.realPath!(path) }),
		};
	}
}
