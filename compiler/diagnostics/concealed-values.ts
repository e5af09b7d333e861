/** Keeps the values of environment variables, which may be secrets, out of diagnostics. */
import type { Reader } from '../source/reader.ts';
import type { Diagnostic } from './diagnostic.ts';

/** Shorter values are ports, switches and the like. Hiding them would only make messages unreadable. */
const shortest = 6;

/**
 * Remembers the environment values that a compilation reads, and replaces them in messages by the names of their variables. Code
 * frames quote the text before substitution, so a frame and its message agree.
 */
export class ConcealedValues {
	/** Maps each value to the text that replaces it. */
	readonly #names = new Map<string, string>();

	/** Wraps the reader so that every value it returns is remembered. */
	watching(reader: Reader): Reader {
		return {
			workingDirectory: reader.workingDirectory,
			readText: path => reader.readText(path),
			readBytes: path => reader.readBytes(path),
			list: path => reader.list(path),
			kind: path => reader.kind(path),
			env: name => {
				const value = reader.env(name);
				if (value !== undefined && value.length >= shortest) this.#names.set(value, `{$${name}}`);
				return value;
			},
		};
	}

	/** Returns the diagnostic with all remembered values replaced. */
	conceal(diagnostic: Diagnostic): Diagnostic {
		if (this.#names.size === 0) return diagnostic;
		const { message, label, hint, fix } = diagnostic;
		const concealed = { message: this.#text(message), label: this.#text(label), hint: this.#text(hint) };
		const same = concealed.message === message && concealed.label === label && concealed.hint === hint;
		// Drops a fix whose edits would write a hidden value into the file.
		const tells = fix?.edits.some(({ text }) => this.#text(text) !== text) ?? false;
		if (same && !tells) return diagnostic;
		return { ...diagnostic, ...concealed, fix: tells ? undefined : fix };
	}

	#text<T extends string | undefined>(text: T): T {
		if (text === undefined) return text;
		let concealed: string = text;
		// Longer values come first, because a value may contain a shorter one.
		for (const [value, name] of [...this.#names].sort(([one], [other]) => other.length - one.length)) {
			for (const form of formsOf(value))
				if (concealed.includes(form)) concealed = concealed.replaceAll(form, () => name);
		}
		return concealed as T;
	}
}

/**
 * Returns the forms in which messages quote a value: verbatim, as JSON, in lower case, and its individual words, split at white
 * space or commas.
 */
function formsOf(value: string): Set<string> {
	const trimmed = value.trim();
	const whole = [value, trimmed, JSON.stringify(value).slice(1, -1), trimmed.toLowerCase()];
	return new Set([...whole, ...trimmed.split(/[\s,{}]+/)].filter(form => form.length >= shortest));
}
