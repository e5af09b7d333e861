/** What is said of a file in the fields of an answer; worked out once for a file that is given again and again. */
import type { OpenFile } from '../../../exchange/leases.ts';
import { contentType } from './content-type.ts';
import { FileTimes } from './file-times.ts';

export interface FileFacts {
	/** Entity tag of its time and size; undefined where the time is not a real one (0 or 1 s: archives and images made reproducible). */
	readonly etag: string | undefined;
	/** Last change in whole seconds since the epoch; undefined likewise. */
	readonly seconds: number | undefined;
	/** The same as an HTTP-date; '' likewise. */
	readonly date: string;
	/** Media type by its own name. */
	readonly type: string | undefined;
	/** Whether the patterns of the site hide it; undefined until they have been asked. */
	hidden: boolean | undefined;
}

/** The facts of the files of one `files` step. */
export class KnownFacts {
	readonly #known = new WeakMap<OpenFile, FileFacts>();
	readonly #times = new FileTimes();

	of(file: OpenFile): FileFacts {
		if (file.from === 'disk') return this.#factsOf(file);
		let facts = this.#known.get(file);
		if (facts === undefined) {
			facts = this.#factsOf(file);
			this.#known.set(file, facts);
		}
		return facts;
	}

	#factsOf(file: OpenFile): FileFacts {
		const { changed, size } = file;
		const { seconds } = changed;
		// By its own name: a link may have another end.
		const type = contentType(file.asNamed ? file.below! : file.path);
		if (seconds === 0 || seconds === 1) {
			return { etag: undefined, seconds: undefined, date: '', type, hidden: undefined };
		}
		const etag = this.#times.tag(seconds, changed.nanoseconds, size);
		return { etag, seconds, date: this.#times.date(seconds), type, hidden: undefined };
	}
}
