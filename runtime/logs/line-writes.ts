/** Writes lines atomically: after a partial write, a line is either completed or removed. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, write as systemWrite } from 'node:fs';
import { countLines, type LineKind, LOSS_CLOSED, type WriterEvents } from './log-losses.ts';

/** Milliseconds until a write to a full descriptor is retried. */
const WRITE_RETRY_MS = 10;
const NEWLINE_BYTE = 10;

/** The result of a write: the number of bytes written, and the system's error code if the write failed. */
interface WriteResult {
	readonly written: number;
	readonly errorCode: string | undefined;
}

/** Removes the last bytes of an output; returns false if that is not possible. */
export type RemovePartialLine = (partialLine: Buffer) => boolean;

/** Writes to one output, one write at a time. */
export class LineWrites {
	readonly #events: WriterEvents;
	readonly #write: typeof systemWrite;
	/** The rest of a partially written line. */
	#partialLine: { readonly bytes: Buffer; readonly kind: LineKind } | undefined;

	/** @param events Receives the lines that could not be written. */
	constructor(events: WriterEvents, write: typeof systemWrite = systemWrite) {
		this.#events = events;
		this.#write = write;
	}

	/**
	 * Writes lines. Always resolves, because a log that cannot be written (a closed pipe, a full disk) must not end the server.
	 * `written` is the number of bytes by which the output has grown. A partially written line is removed by `removePartialLine`
	 * or, if that is not possible, completed before the next write.
	 */
	async write(
		descriptor: number,
		bytes: Buffer,
		kind: LineKind,
		removePartialLine: RemovePartialLine = () => false,
	): Promise<WriteResult> {
		const finishResult = await this.#finishPartialLine(descriptor);
		if (finishResult.errorCode !== undefined) {
			this.#events.onLost(countLines(bytes), kind, finishResult.errorCode);
			return finishResult;
		}
		const { written, errorCode } = await writeAll(this.#write, descriptor, bytes);
		if (errorCode === undefined) {
			this.#events.onWritten();
			return { written: finishResult.written + written, errorCode };
		}
		const lastLineEnd = written === 0 ? 0 : bytes.lastIndexOf(NEWLINE_BYTE, written - 1) + 1;
		let keptEnd = written;
		let lostStart = lastLineEnd;
		if (written > lastLineEnd) {
			if (removePartialLine(bytes.subarray(lastLineEnd, written))) keptEnd = lastLineEnd;
			else {
				lostStart = bytes.indexOf(NEWLINE_BYTE, written) + 1 || bytes.length;
				this.#partialLine = { bytes: Buffer.from(bytes.subarray(written, lostStart)), kind };
			}
		}
		this.#events.onLost(countLines(bytes.subarray(lostStart)), kind, errorCode);
		return { written: finishResult.written + keptEnd, errorCode };
	}

	/** Discards the rest of a partial line, because the output is being replaced or closed. */
	discardPartialLine(): void {
		if (this.#partialLine) this.#events.onLost(1, this.#partialLine.kind, LOSS_CLOSED);
		this.#partialLine = undefined;
	}

	async #finishPartialLine(descriptor: number): Promise<WriteResult> {
		const partialLine = this.#partialLine;
		if (!partialLine) return { written: 0, errorCode: undefined };
		const { written, errorCode } = await writeAll(this.#write, descriptor, partialLine.bytes);
		this.#partialLine =
			errorCode === undefined ? undefined : { ...partialLine, bytes: partialLine.bytes.subarray(written) };
		return { written, errorCode };
	}
}

/** Removes bytes from the end of a file, unless another process has appended to it in the meantime. */
export function removeEndOfFile(path: string, descriptor: number, partialLine: Buffer): boolean {
	try {
		const { size, ino, dev } = fstatSync(descriptor);
		const reader = openSync(path, 'r');
		try {
			const namedFile = fstatSync(reader);
			const endOfFile = Buffer.alloc(partialLine.length);
			if (namedFile.ino !== ino || namedFile.dev !== dev) return false;
			if (
				readSync(reader, endOfFile, 0, endOfFile.length, size - endOfFile.length) !== endOfFile.length ||
				!endOfFile.equals(partialLine)
			)
				return false;
		} finally {
			closeSync(reader);
		}
		ftruncateSync(descriptor, size - partialLine.length);
		return true;
	} catch {
		return false;
	}
}

function writeAll(write: typeof systemWrite, descriptor: number, bytes: Buffer): Promise<WriteResult> {
	return new Promise(resolve => {
		const writeFrom = (offset: number): void => {
			write(descriptor, bytes, offset, bytes.length - offset, null, (error, written) => {
				if (error && (error.code === 'EAGAIN' || error.code === 'EINTR')) {
					setTimeout(writeFrom, WRITE_RETRY_MS, offset);
				} else if (error) resolve({ written: offset, errorCode: error.code ?? 'EIO' });
				else if (offset + written >= bytes.length) resolve({ written: bytes.length, errorCode: undefined });
				else writeFrom(offset + written);
			});
		};
		writeFrom(0);
	});
}
