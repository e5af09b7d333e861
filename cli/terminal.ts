/** What commands print, and where: results on standard output, everything else on standard error. */

/** Prints a result. A reader that has gone (`svc adapt | head -1`) ends the process quietly. */
export function print(text: string): void {
	write(process.stdout, text);
}

/** Prints a message for people. */
export function printError(text: string): void {
	write(process.stderr, text);
}

/** True when colours may be used on standard error: it is a terminal, and neither NO_COLOR nor TERM=dumb says otherwise. */
export function colourOnStandardError(): boolean {
	return process.stderr.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
}

/** All of standard input as text. */
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
