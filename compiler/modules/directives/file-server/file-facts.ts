/** Response fields that depend only on the file, computed once per cached file. */
import type { OpenFile } from '../../../exchange/leases.ts';
import { contentType } from '../../representations/content-type.ts';
import { FileTimes } from './file-times.ts';

export interface FileFacts {
	/**
	 * Entity tag from modification time and size; undefined if the time is artificial: 0 or 1 s, as in reproducible archives and
	 * images.
	 */
	readonly etag: string | undefined;
	/** Last modification in whole seconds since the epoch; undefined if the time is artificial. */
	readonly seconds: number | undefined;
	/** Last modification as an HTTP-date; '' if the time is artificial. */
	readonly date: string;
	/** Media type, by the extension of the requested name. */
	readonly type: string | undefined;
	/** Whether the file server hides the file; undefined until checked. */
	hidden: boolean | undefined;
}

/** Caches the facts about the files of one `files` step. */
export class FileFactsCache {
	readonly #facts = new WeakMap<OpenFile, FileFacts>();
	readonly #times = new FileTimes();

	get(file: OpenFile): FileFacts {
		if (file.source === 'disk') return this.#factsOf(file);
		let facts = this.#facts.get(file);
		if (facts === undefined) {
			facts = this.#factsOf(file);
			this.#facts.set(file, facts);
		}
		return facts;
	}

	#factsOf(file: OpenFile): FileFacts {
		const { modified, size } = file;
		const { seconds } = modified;
		// The type follows from the requested name, because the target of a symbolic link may have another extension.
		const type = contentType(file.noLinkFollowed ? file.relativePath! : file.path);
		if (seconds === 0 || seconds === 1) {
			return { etag: undefined, seconds: undefined, date: '', type, hidden: undefined };
		}
		const etag = this.#times.entityTag(seconds, modified.nanoseconds, size);
		return { etag, seconds, date: this.#times.date(seconds), type, hidden: undefined };
	}
}
