/** Words the mistakes of a Compatfile as the compatible server does, so that searching for its messages finds them. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { fileAndLine, importChain } from '../syntax/structure-mistake.ts';

/** Outside of any directive, these messages have their place in front instead of at the end. */
const PLACE_FIRST = ['unrecognized directive: ', 'unrecognized global option: '];
const NESTED = 'are you sure your Compatfile structure (nesting and braces) is correct?';

/**
 * Adds the directive or option in which a mistake was found, and says where its place goes. Sentences of our own, for which the
 * compatible server has no counterpart, are left unchanged: they contain backticks or end with a period.
 */
export function compatibleMessage(
	message: string,
	directive: string | undefined,
): { readonly message: string; readonly place?: Diagnostic['place'] } {
	if (message.includes('`') || (message.endsWith('.') && /^[A-Z]/.test(message))) return { message };
	if (directive !== undefined)
		return { message: `parsing compatfile tokens for '${directive}': ${message}`, place: 'behind' };
	const first = PLACE_FIRST.some(text => message.startsWith(text)) && !message.endsWith(NESTED);
	return { message, place: first ? 'before' : 'behind' };
}

/** Inserts the place into the message. Done last, because only then is the line certain. */
export function withPlace(diagnostic: Diagnostic): Diagnostic {
	const { place, ...rest } = diagnostic;
	const { message, span } = rest;
	if (place === undefined || !span) return diagnostic;
	if (place === 'before') return { ...rest, message: `${fileAndLine(span)}: ${message}` };
	return { ...rest, message: `${message}, at ${fileAndLine(span)}${importChain(span)}` };
}
