/**
 * A reader that reads each file, folder or variable once and records the result. A later compilation can then check whether
 * anything has changed.
 */
import { hash } from 'node:crypto';
import { type FileKind, ReadError, type Reader } from './reader.ts';

/** One recorded read and its result. */
export interface RecordedRead {
	readonly method: 'readText' | 'readBytes' | 'list' | 'kind' | 'env';
	/** The path, or the name of the environment variable. */
	readonly target: string;
	/** The result as a string, such as a digest or the code of a failure. Equal results have equal strings. */
	readonly result: string;
}

type Outcome<T> =
	| { readonly value: T; readonly read: RecordedRead }
	| { readonly error: ReadError; readonly read: RecordedRead };

/** Reads through another reader, and caches every result: within its lifetime, each file is seen in one state. */
export class RecordingReader implements Reader {
	readonly workingDirectory: string;
	readonly #reader: Reader;
	readonly #outcomeByRead = new Map<string, Outcome<unknown>>();
	/** The open records, outermost first. Each read is added to all of them. */
	readonly #openRecords: RecordedRead[][] = [];

	constructor(reader: Reader) {
		this.#reader = reader;
		this.workingDirectory = reader.workingDirectory;
	}

	readText(path: string): string {
		return this.#read('readText', path, text => `=${text}`);
	}

	readBytes(path: string): Uint8Array {
		return this.#read('readBytes', path, bytes => hash('sha256', bytes, 'base64'));
	}

	list(path: string): readonly string[] {
		return this.#read('list', path, names => names.join('\0'));
	}

	kind(path: string): FileKind | undefined {
		return this.#read('kind', path, kind => kind ?? '');
	}

	env(name: string): string | undefined {
		return this.#read('env', name, value => (value === undefined ? '' : `=${value}`));
	}

	/** Starts and returns a record of all reads, which is extended until {@link endRecord}. */
	startRecord(): readonly RecordedRead[] {
		const record: RecordedRead[] = [];
		this.#openRecords.push(record);
		return record;
	}

	/** Ends the most recently started record. */
	endRecord(): void {
		this.#openRecords.pop();
	}

	/** Reads everything in a record again; reports whether all results are the same. */
	confirms(record: readonly RecordedRead[]): boolean {
		return record.every(({ method, target, result: earlierResult }) => {
			try {
				this[method](target);
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
			}
			return this.#outcomeByRead.get(`${method} ${target}`)!.read.result === earlierResult;
		});
	}

	#read<W extends RecordedRead['method']>(
		method: W,
		target: string,
		resultTextOf: (value: ReturnType<Reader[W]>) => string,
	): ReturnType<Reader[W]> {
		const readKey = `${method} ${target}`;
		let outcome = this.#outcomeByRead.get(readKey) as Outcome<ReturnType<Reader[W]>> | undefined;
		if (!outcome) {
			try {
				const value = this.#reader[method](target) as ReturnType<Reader[W]>;
				outcome = { value, read: { method, target, result: resultTextOf(value) } };
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
				outcome = { error, read: { method, target, result: `!${error.code}` } };
			}
			this.#outcomeByRead.set(readKey, outcome);
		}
		for (const record of this.#openRecords) record.push(outcome.read);
		if ('error' in outcome) throw outcome.error;
		return outcome.value;
	}
}
