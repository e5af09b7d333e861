/**
 * A reader that reads each file, folder or variable once and records the result, so that a later compilation can check whether it
 * has changed.
 */
import { hash } from 'node:crypto';
import { type FileKind, ReadError, type Reader } from './reader.ts';

/** One recorded read and its result. */
export interface RecordedRead {
	readonly what: 'readText' | 'readBytes' | 'list' | 'kind' | 'env';
	/** The path, or the name of the variable. */
	readonly of: string;
	/** The result as a string, such as a digest or the code of a failure. Equal results have equal strings. */
	readonly answer: string;
}

type Outcome<T> =
	| { readonly value: T; readonly asked: RecordedRead }
	| { readonly error: ReadError; readonly asked: RecordedRead };

/** Reads through another reader, and caches every result: within its lifetime, each file is seen in one state. */
export class RecordingReader implements Reader {
	readonly workingDirectory: string;
	readonly #reader: Reader;
	readonly #outcomes = new Map<string, Outcome<unknown>>();
	/** Open records, outermost first. Reads are added to all of them. */
	readonly #records: RecordedRead[][] = [];

	constructor(reader: Reader) {
		this.#reader = reader;
		this.workingDirectory = reader.workingDirectory;
	}

	readText(path: string): string {
		return this.#ask('readText', path, text => `=${text}`);
	}

	readBytes(path: string): Uint8Array {
		return this.#ask('readBytes', path, bytes => hash('sha256', bytes, 'base64'));
	}

	list(path: string): readonly string[] {
		return this.#ask('list', path, names => names.join('\0'));
	}

	kind(path: string): FileKind | undefined {
		return this.#ask('kind', path, kind => kind ?? '');
	}

	env(name: string): string | undefined {
		return this.#ask('env', name, value => (value === undefined ? '' : `=${value}`));
	}

	/** Starts and returns a record of all reads, which is extended until {@link stop}. */
	record(): readonly RecordedRead[] {
		const record: RecordedRead[] = [];
		this.#records.push(record);
		return record;
	}

	/** Ends the most recently started record. */
	stop(): void {
		this.#records.pop();
	}

	/** Reads everything in a record again; reports whether all results are the same. */
	confirms(record: readonly RecordedRead[]): boolean {
		return record.every(({ what, of, answer }) => {
			try {
				this[what](of);
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
			}
			return this.#outcomes.get(`${what} ${of}`)!.asked.answer === answer;
		});
	}

	#ask<W extends RecordedRead['what']>(
		what: W,
		of: string,
		asText: (value: ReturnType<Reader[W]>) => string,
	): ReturnType<Reader[W]> {
		const key = `${what} ${of}`;
		let outcome = this.#outcomes.get(key) as Outcome<ReturnType<Reader[W]>> | undefined;
		if (!outcome) {
			try {
				const value = this.#reader[what](of) as ReturnType<Reader[W]>;
				outcome = { value, asked: { what, of, answer: asText(value) } };
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
				outcome = { error, asked: { what, of, answer: `!${error.code}` } };
			}
			this.#outcomes.set(key, outcome);
		}
		for (const record of this.#records) record.push(outcome.asked);
		if ('error' in outcome) throw outcome.error;
		return outcome.value;
	}
}
