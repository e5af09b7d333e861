/** Reads a password: on a terminal, typed twice without echo; otherwise from standard input. */
import type { ReadStream } from 'node:tty';
import { CommandFailure } from './command.ts';
import { printError, readStandardInput } from './terminal.ts';

/** Returns the password. @throws {@link CommandFailure} if the two entries differ or input was aborted */
export async function readPassword(): Promise<string> {
	if (!process.stdin.isTTY) {
		const text = await readStandardInput();
		const lineEnd = text.search(/\r?\n/);
		return lineEnd === -1 ? text : text.slice(0, lineEnd);
	}
	const password = await readTypedLine('Enter password: ');
	if ((await readTypedLine('Confirm password: ')) !== password) throw new CommandFailure('The two passwords differ.');
	return password;
}

/** Reads one line from the terminal without echo. */
function readTypedLine(prompt: string): Promise<string> {
	const terminal = process.stdin as ReadStream;
	printError(prompt);
	terminal.setRawMode(true);
	terminal.setEncoding('utf8');
	terminal.resume();
	return new Promise((resolve, reject) => {
		let line = '';
		const stopReading = (): void => {
			terminal.setRawMode(false);
			terminal.pause();
			terminal.off('data', onData);
			printError('\n');
		};
		const onData = (text: string): void => {
			for (const character of text) {
				if (character === '\r' || character === '\n' || character === '\u0004') {
					stopReading();
					resolve(line);
					return;
				}
				if (character === '\u0003') {
					stopReading();
					reject(new CommandFailure('Interrupted.', { status: 130 }));
					return;
				}
				if (character === '\u007f' || character === '\b') line = [...line].slice(0, -1).join('');
				else if (character === '\u0015') line = '';
				else line += character;
			}
		};
		terminal.on('data', onData);
	});
}
