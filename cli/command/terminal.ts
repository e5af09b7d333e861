/**
 * Command output: results on standard output, everything else on standard error. Both are written by system calls, because loading
 * Node's streams takes longer than many a command.
 */
import { fstatSync, statSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';

/** A standard output: its descriptor, and Node's stream for it. */
interface Output {
	readonly descriptor: number;
	readonly stream: () => NodeJS.WriteStream;
	/** True if the stream must be used, because the descriptor was not ready to take everything. */
	usesStream: boolean;
}

const standardOutput: Output = { descriptor: 1, stream: () => process.stdout, usesStream: false };
const standardError: Output = { descriptor: 2, stream: () => process.stderr, usesStream: false };

/** Prints a result. If the reader has gone (`svc adapt | head -1`), ends the process quietly. */
export function print(text: string): void {
	write(standardOutput, text);
}

/** Prints a message to standard error. */
export function printError(text: string): void {
	write(standardError, text);
}

/**
 * Reports whether to use colors on standard error, which is the case if it is a terminal and neither NO_COLOR nor TERM=dumb is set.
 */
export function shouldColorStandardError(): boolean {
	return supportsColor(standardError);
}

/** Reports whether to use colors on standard output, by the rules of {@link shouldColorStandardError}. */
export function shouldColorStandardOutput(): boolean {
	return supportsColor(standardOutput);
}

function supportsColor({ descriptor }: Output): boolean {
	return !process.env.NO_COLOR && process.env.TERM !== 'dumb' && isTerminal(descriptor);
}

function isTerminal(descriptor: number): boolean {
	try {
		const status = fstatSync(descriptor);
		// The module with `isatty` is loaded for devices only, of which /dev/null is the most frequent one that is no terminal.
		return status.isCharacterDevice() && status.rdev !== statSync('/dev/null').rdev && isatty(descriptor);
	} catch {
		return false;
	}
}

/** Reads all of standard input as text. */
export async function readStandardInput(): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
	const text = Buffer.concat(chunks).toString('utf8');
	return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function write(output: Output, text: string): void {
	if (output.usesStream) {
		writeToStream(output, text);
		return;
	}
	const bytes = Buffer.from(text);
	let writtenBytes = 0;
	try {
		while (writtenBytes < bytes.length) writtenBytes += writeSync(output.descriptor, bytes, writtenBytes);
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === 'EAGAIN') {
			// Whoever shares the pipe or terminal has made it non-blocking. The stream waits until it can take the rest.
			output.usesStream = true;
			writeToStream(output, bytes.subarray(writtenBytes));
		} else handleFailure(code);
	}
}

function writeToStream(output: Output, content: string | Uint8Array): void {
	const stream = output.stream();
	if (stream.listenerCount('error') === 0) {
		stream.on('error', (error: NodeJS.ErrnoException) => handleFailure(error.code));
	}
	stream.write(content);
}

/** Handles a failed write. If the reader has gone, nothing more has to be done. */
function handleFailure(code: string | undefined): void {
	if (code !== 'EPIPE') process.exitCode = 1;
}
