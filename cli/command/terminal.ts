/** Command output: results on standard output, everything else on standard error. */

/** Prints a result. If the reader has gone (`svc adapt | head -1`), ends the process quietly. */
export function print(text: string): void {
	write(process.stdout, text);
}

/** Prints a message to standard error. */
export function printError(text: string): void {
	write(process.stderr, text);
}

/**
 * Reports whether to use colors on standard error, which is the case if it is a terminal and neither NO_COLOR nor TERM=dumb is set.
 */
export function shouldColorStandardError(): boolean {
	return supportsColor(process.stderr);
}

/** Reports whether to use colors on standard output, by the rules of {@link shouldColorStandardError}. */
export function shouldColorStandardOutput(): boolean {
	return supportsColor(process.stdout);
}

function supportsColor(stream: NodeJS.WriteStream): boolean {
	return stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
}

/** Reads all of standard input as text. */
export async function readStandardInput(): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
	const text = Buffer.concat(chunks).toString('utf8');
	return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function write(stream: NodeJS.WriteStream, text: string): void {
	if (stream.listenerCount('error') === 0) {
		stream.on('error', (error: NodeJS.ErrnoException) => {
			if (error.code !== 'EPIPE') process.exitCode = 1;
		});
	}
	stream.write(text);
}
