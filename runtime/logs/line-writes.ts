/** Writes lines atomically: after a partial write, a line is either completed or removed. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, write as systemWrite } from 'node:fs';
import { type LineKind, LOSS_CLOSED, linesIn, type WriterEvents } from './log-losses.ts';

/** Milliseconds until a write to a full descriptor is retried. */
const RETRY = 10;
const NEWLINE = 10;

/** The result of a write; `failed` is the system's error code. */
interface Written {
	readonly written: number;
	readonly failed: string | undefined;
}

/** Removes the last bytes of an output; returns false if that is not possible. */
export type RemoveWrittenEnd = (torn: Buffer) => boolean;

/** Writes to one output, one write at a time. */
export class LineWrites {
	readonly #events: WriterEvents;
	readonly #write: typeof systemWrite;
	/** The rest of a partially written line. */
	#rest: { readonly bytes: Buffer; readonly kind: LineKind } | undefined;

	/** @param events Receives the lines that could not be written. */
	constructor(events: WriterEvents, write: typeof systemWrite = systemWrite) {
		this.#events = events;
		this.#write = write;
	}

	/**
	 * Writes lines. Always resolves, because a log that cannot be written (a closed pipe, a full disk) must not end the server.
	 * `written` is the number of bytes by which the output has grown. A partially written line is removed by `cutBack`, or otherwise
	 * completed before the next write.
	 */
	async write(
		descriptor: number,
		bytes: Buffer,
		kind: LineKind,
		cutBack: RemoveWrittenEnd = () => false,
	): Promise<Written> {
		const finished = await this.#finish(descriptor);
		if (finished.failed !== undefined) {
			this.#events.lost(linesIn(bytes), kind, finished.failed);
			return finished;
		}
		const { written, failed } = await writeAll(this.#write, descriptor, bytes);
		if (failed === undefined) {
			this.#events.written();
			return { written: finished.written + written, failed };
		}
		const whole = written === 0 ? 0 : bytes.lastIndexOf(NEWLINE, written - 1) + 1;
		let end = written;
		let lostFrom = whole;
		if (written > whole) {
			if (cutBack(bytes.subarray(whole, written))) end = whole;
			else {
				lostFrom = bytes.indexOf(NEWLINE, written) + 1 || bytes.length;
				this.#rest = { bytes: Buffer.from(bytes.subarray(written, lostFrom)), kind };
			}
		}
		this.#events.lost(linesIn(bytes.subarray(lostFrom)), kind, failed);
		return { written: finished.written + end, failed };
	}

	/** Discards the rest of a partial line, because the output is being replaced or closed. */
	forget(): void {
		if (this.#rest) this.#events.lost(1, this.#rest.kind, LOSS_CLOSED);
		this.#rest = undefined;
	}

	async #finish(descriptor: number): Promise<Written> {
		const rest = this.#rest;
		if (!rest) return { written: 0, failed: undefined };
		const { written, failed } = await writeAll(this.#write, descriptor, rest.bytes);
		this.#rest = failed === undefined ? undefined : { ...rest, bytes: rest.bytes.subarray(written) };
		return { written, failed };
	}
}

/** Removes bytes from the end of a file, unless another process has appended to it in the meantime. */
export function removeEndOfFile(path: string, descriptor: number, torn: Buffer): boolean {
	try {
		const { size, ino, dev } = fstatSync(descriptor);
		const reader = openSync(path, 'r');
		try {
			const named = fstatSync(reader);
			const end = Buffer.alloc(torn.length);
			if (named.ino !== ino || named.dev !== dev) return false;
			if (readSync(reader, end, 0, end.length, size - end.length) !== end.length || !end.equals(torn)) return false;
		} finally {
			closeSync(reader);
		}
		ftruncateSync(descriptor, size - torn.length);
		return true;
	} catch {
		return false;
	}
}

function writeAll(write: typeof systemWrite, descriptor: number, bytes: Buffer): Promise<Written> {
	return new Promise(done => {
		const next = (offset: number): void => {
			write(descriptor, bytes, offset, bytes.length - offset, null, (error, written) => {
				if (error && (error.code === 'EAGAIN' || error.code === 'EINTR')) {
					setTimeout(next, RETRY, offset);
				} else if (error) done({ written: offset, failed: error.code ?? 'EIO' });
				else if (offset + written >= bytes.length) done({ written: bytes.length, failed: undefined });
				else next(offset + written);
			});
		};
		next(0);
	});
}
