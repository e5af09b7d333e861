/** Redacts the secrets of configurations in the output of `svc diff`, which may be posted as a comment on a code host. */
import type { Document } from '../document/document.ts';
import { escapePointer, valueAt } from '../document/json-pointer.ts';
import { findSecrets } from '../schema/secrets.ts';

/**
 * Minimum characters of a secret that is hidden. The characters of a shorter one often occur elsewhere by chance, and would be
 * hidden there, too.
 */
const MIN_SECRET_CHARS = 4;

/**
 * Replaces each secret with a numbered mark. Equal secrets have equal numbers, so that a reader can see whether a secret has
 * changed.
 */
export class SecretMask {
	/** Each secret with its number, in plain form and, if it differs, escaped as in JSON. The longest texts come first. */
	readonly #numberedSecrets: readonly (readonly [secret: string, number: number])[];

	constructor(documents: readonly Document[]) {
		const numbersBySecret = new Map<string, number>();
		for (const document of documents) {
			for (const { path, parts } of findSecrets(document)) {
				const containingText = valueAt(document, path.map(key => `/${escapePointer(key)}`).join('')) as string;
				for (const { start, end } of parts) {
					const secret = containingText.slice(start, end);
					if (secret.length >= MIN_SECRET_CHARS && !numbersBySecret.has(secret))
						numbersBySecret.set(secret, numbersBySecret.size + 1);
				}
			}
		}
		this.#numberedSecrets = [...numbersBySecret]
			.flatMap(([secret, number]) => {
				const jsonEscaped = JSON.stringify(secret).slice(1, -1);
				return [secret, ...(jsonEscaped === secret ? [] : [jsonEscaped])].map(text => [text, number] as const);
			})
			.sort(([first], [second]) => second.length - first.length);
	}

	/** Returns the text with each secret replaced by its mark. */
	hide(text: string): string {
		let masked = text;
		for (const [secret, number] of this.#numberedSecrets) masked = masked.replaceAll(secret, `[redacted ${number}]`);
		return masked;
	}
}
