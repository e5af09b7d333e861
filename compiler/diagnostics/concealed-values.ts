/** Keeps what stands in the environment, which may be a secret, out of what is said about a configuration. */
import type { Reader } from '../source/reader.ts';
import type { Diagnostic } from './diagnostic.ts';

/** Shorter values are ports, switches and the like: hiding them would only make messages unreadable. */
const shortest = 6;

/**
 * Remembers the values that a compilation took from the environment, and puts the variable's name where one stands in a
 * message. Code frames show the text before substitution, so that a diagnostic reads the same in both.
 */
export class ConcealedValues {
	/** Values to what is written in their place. */
	readonly #names = new Map<string, string>();

	/** The reader, with every value that it gives remembered. */
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

	/** The diagnostic without the values. */
	conceal(diagnostic: Diagnostic): Diagnostic {
		if (this.#names.size === 0) return diagnostic;
		const { message, label, hint, fix } = diagnostic;
		const concealed = { message: this.#text(message), label: this.#text(label), hint: this.#text(hint) };
		const same = concealed.message === message && concealed.label === label && concealed.hint === hint;
		// An edit that would write a value down is none.
		const tells = fix?.some(({ text }) => this.#text(text) !== text) ?? false;
		if (same && !tells) return diagnostic;
		return { ...diagnostic, ...concealed, fix: tells ? undefined : fix };
	}

	#text<T extends string | undefined>(text: T): T {
		if (text === undefined) return text;
		let concealed: string = text;
		// Longer values first: one may be a part of another.
		for (const [value, name] of [...this.#names].sort(([one], [other]) => other.length - one.length)) {
			for (const form of formsOf(value))
				if (concealed.includes(form)) concealed = concealed.replaceAll(form, () => name);
		}
		return concealed as T;
	}
}

/** A value as messages quote it: as it is, as JSON, in lower case, and its words where it was split at white space or commas. */
function formsOf(value: string): Set<string> {
	const trimmed = value.trim();
	const whole = [value, trimmed, JSON.stringify(value).slice(1, -1), trimmed.toLowerCase()];
	return new Set([...whole, ...trimmed.split(/[\s,{}]+/)].filter(form => form.length >= shortest));
}
