/** Keeps the values of environment variables, which may be secrets, out of diagnostics. */
import type { Reader } from '../source/reader.ts';
import type { Diagnostic } from './diagnostic.ts';

/**
 * Minimum UTF-16 units of a value to be concealed. Shorter values are usually ports, switches and the like; concealing these would
 * make messages unreadable.
 */
const MIN_CONCEALED_LENGTH = 6;

/**
 * Remembers the environment values that a compilation reads, and replaces these values in messages with the names of their
 * variables. Code frames quote the text before substitution, so a frame and its message show the same text.
 */
export class ConcealedValues {
	/** Maps each value to the text that replaces it. */
	readonly #replacementByValue = new Map<string, string>();

	/** Returns a reader that remembers every environment value that `reader` returns. */
	watchedReader(reader: Reader): Reader {
		return {
			workingDirectory: reader.workingDirectory,
			readText: path => reader.readText(path),
			readBytes: path => reader.readBytes(path),
			list: path => reader.list(path),
			kind: path => reader.kind(path),
			env: name => {
				const value = reader.env(name);
				if (value !== undefined && value.length >= MIN_CONCEALED_LENGTH)
					this.#replacementByValue.set(value, `{$${name}}`);
				return value;
			},
		};
	}

	/** Returns the diagnostic with the names of the variables instead of all remembered values. */
	conceal(diagnostic: Diagnostic): Diagnostic {
		if (this.#replacementByValue.size === 0) return diagnostic;
		const { message, label, hint, fix } = diagnostic;
		const concealedFields = {
			message: this.#concealText(message),
			label: this.#concealText(label),
			hint: this.#concealText(hint),
		};
		const isUnchanged =
			concealedFields.message === message && concealedFields.label === label && concealedFields.hint === hint;
		// A fix that would write a concealed value into the file is dropped.
		const fixRevealsValue = fix?.edits.some(({ text }) => this.#concealText(text) !== text) ?? false;
		if (isUnchanged && !fixRevealsValue) return diagnostic;
		return { ...diagnostic, ...concealedFields, fix: fixRevealsValue ? undefined : fix };
	}

	#concealText<T extends string | undefined>(text: T): T {
		if (text === undefined) return text;
		let concealedText: string = text;
		// Longer values come first, because a value may contain a shorter one.
		for (const [value, name] of [...this.#replacementByValue].sort(([one], [other]) => other.length - one.length)) {
			for (const form of quotedForms(value))
				if (concealedText.includes(form)) concealedText = concealedText.replaceAll(form, () => name);
		}
		return concealedText as T;
	}
}

/**
 * Returns the forms in which messages quote a value: verbatim, as JSON, in lower case, and its individual words, split at white
 * space or commas.
 */
function quotedForms(value: string): Set<string> {
	const trimmedValue = value.trim();
	const wholeForms = [value, trimmedValue, JSON.stringify(value).slice(1, -1), trimmedValue.toLowerCase()];
	return new Set(
		[...wholeForms, ...trimmedValue.split(/[\s,{}]+/)].filter(form => form.length >= MIN_CONCEALED_LENGTH),
	);
}
