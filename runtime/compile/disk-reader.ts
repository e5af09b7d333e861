/** The compiler's `Reader` for the real file system and environment. */
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';

/** Maximum bytes of a file. A configuration may name a device or a pipe that never ends. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/**
 * Returns a reader of regular files of up to 64 MiB. Relative paths resolve against `workingDirectory`; `environment`
 * defaults to the process's. A leading byte order mark is removed.
 */
export function diskReader(
	workingDirectory: string,
	environment: { readonly [name: string]: string | undefined } = process.env,
): Reader {
	const readAbsolute = <T>(path: string, read: (absolute: string) => T): T => {
		try {
			return read(resolve(workingDirectory, path));
		} catch (error) {
			throw new ReadError(errorCodeOf(error), path);
		}
	};
	return {
		workingDirectory,
		readText: path => readAbsolute(path, absolute => decodeText(readRegularFile(absolute))),
		readBytes: path => readAbsolute(path, readRegularFile),
		list: path => readAbsolute(path, absolute => readdirSync(absolute).sort()),
		kind: path => {
			try {
				const stats = statSync(resolve(workingDirectory, path));
				return stats.isDirectory() ? 'directory' : stats.isFile() ? 'file' : 'other';
			} catch {
				return undefined;
			}
		},
		env: name => (Object.hasOwn(environment, name) ? environment[name] : undefined),
	};
}

/** Reads a file named on the command line, which may also be a pipe. Throws ReadError. */
export function readConfigurationText(path: string): string {
	try {
		return decodeText(readBoundedFile(path));
	} catch (error) {
		throw new ReadError(errorCodeOf(error), path);
	}
}

function decodeText(bytes: Buffer): string {
	const text = bytes.toString();
	return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Reads a regular file. Throws for anything else, because a pipe without a writer, or a terminal, would block forever. */
function readRegularFile(path: string): Buffer {
	const stats = statSync(path);
	if (stats.isFile()) return readBoundedFile(path);
	throw Object.assign(new Error('not a regular file'), { code: stats.isDirectory() ? 'EISDIR' : 'EINVAL' });
}

function readBoundedFile(path: string): Buffer {
	const file = openSync(path, 'r');
	try {
		const pieces: Buffer[] = [];
		let totalBytes = 0;
		for (;;) {
			// Requests one byte more than the reported size, so that a single read returns a typical file and also shows its end.
			const { size: reportedSize } = pieces.length === 0 ? statSync(path) : { size: 0 };
			const piece = Buffer.allocUnsafe(reportedSize > 0 ? Math.min(MAX_FILE_BYTES + 1, reportedSize + 1) : PIECE_BYTES);
			const bytesRead = readSync(file, piece, 0, piece.length, null);
			if (bytesRead === 0) return Buffer.concat(pieces, totalBytes);
			totalBytes += bytesRead;
			// A regular file returns fewer bytes than requested only at its end.
			if (reportedSize > 0 && bytesRead === reportedSize) return piece.subarray(0, bytesRead);
			if (totalBytes > MAX_FILE_BYTES) throw Object.assign(new Error('the file is too large'), { code: 'EFBIG' });
			pieces.push(piece.subarray(0, bytesRead));
		}
	} finally {
		closeSync(file);
	}
}

/** Returns the system's code of an error, or `EIO` if it has none. */
function errorCodeOf(error: unknown): string {
	const code = (error as { code?: unknown } | null)?.code;
	return typeof code === 'string' ? code : 'EIO';
}
