/** Remembers which file a request looked for last. */
import type { DryRunEnvironment } from '../dry-run/dry-run.ts';
import type { FileReader, LeaseKinds } from '../exchange/leases.ts';

/** Files that do not exist here may exist where the configurations are served, so it matters which ones are looked for. */
export class RecordedFiles {
	/** The last path that was looked for since the last {@link reset}; undefined if there was none. */
	last: string | undefined;

	reset(): void {
		this.last = undefined;
	}

	/** Returns dependencies whose file reader is recorded. */
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
		const seen = (root: string, path: string): void => {
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
