/** Facts about a file from which response fields are made, computed once per cached file. */
import type { OpenFile } from '../../../exchange/leases.ts';
import { contentType } from '../../representations/content-type.ts';
import { FileTimes } from './file-times.ts';

export interface FileFacts {
	/**
	 * Entity tag, made of modification time and size; undefined if the time is artificial: 0 or 1 seconds since the epoch, as in
	 * reproducible archives and images.
	 */
	readonly etag: string | undefined;
	/** Last modification in whole seconds since the epoch; undefined if the time is artificial. */
	readonly modifiedSeconds: number | undefined;
	/** Last modification as an HTTP-date; '' if the time is artificial. */
	readonly httpDate: string;
	/** Media type, determined by the extension of the requested name; undefined if unknown. */
	readonly mediaType: string | undefined;
	/** Whether the file server hides the file; undefined until checked. */
	isHidden: boolean | undefined;
}

/** Caches the facts about the files of one `files` step. */
export class FileFactsCache {
	readonly #factsByFile = new WeakMap<OpenFile, FileFacts>();
	readonly #fileTimes = new FileTimes();

	get(file: OpenFile): FileFacts {
		if (file.source === 'disk') return this.#computeFacts(file);
		let facts = this.#factsByFile.get(file);
		if (facts === undefined) {
			facts = this.#computeFacts(file);
			this.#factsByFile.set(file, facts);
		}
		return facts;
	}

	#computeFacts(file: OpenFile): FileFacts {
		const { modified, size } = file;
		const { seconds } = modified;
		// The type follows from the requested name, because the target of a symbolic link may have another extension.
		const type = contentType(file.noLinkFollowed ? file.relativePath! : file.path);
		if (seconds === 0 || seconds === 1) {
			return { etag: undefined, modifiedSeconds: undefined, httpDate: '', mediaType: type, isHidden: undefined };
		}
		const etag = this.#fileTimes.entityTag(seconds, modified.nanoseconds, size);
		return {
			etag,
			modifiedSeconds: seconds,
			httpDate: this.#fileTimes.date(seconds),
			mediaType: type,
			isHidden: undefined,
		};
	}
}
