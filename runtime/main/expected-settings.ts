/** A guess at settings before a configuration is compiled. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Settings } from '../../compiler/document/document.ts';
/** Returns the number of threads that a configuration seems to ask for, before it is compiled. */
export function expectedSettings({ text }: ConfigInput): Settings {
	const match = /\bthreads"?[ \t]*:?[ \t]*(\d{1,6})\b/.exec(text);
	return match ? { threads: Number(match[1]) } : {};
}
