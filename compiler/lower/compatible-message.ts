/**
 * Gives the messages about a Compatfile the wording of the compatible server, so that users can search the web for these messages.
 */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { fileAndLine, importChain } from '../syntax/structure-mistake.ts';

/** Beginnings of messages outside of any directive in which the place comes first instead of last. */
const PLACE_FIRST = ['unrecognized directive: ', 'unrecognized global option: '];
const NESTING_ADVICE = 'are you sure your Compatfile structure (nesting and braces) is correct?';

/**
 * Adds the name of the directive or option to a message, and determines whether the place is inserted before or after the message.
 * Messages without a counterpart in the compatible server contain backticks or end with a period; they are returned unchanged.
 */
export function withCompatibleMessage(
	message: string,
	directive: string | undefined,
): { readonly message: string; readonly place?: Diagnostic['place'] } {
	if (message.includes('`') || (message.endsWith('.') && /^[A-Z]/.test(message))) return { message };
	if (directive !== undefined)
		return { message: `parsing compatfile tokens for '${directive}': ${message}`, place: 'behind' };
	const isPlaceFirst = PLACE_FIRST.some(text => message.startsWith(text)) && !message.endsWith(NESTING_ADVICE);
	return { message, place: isPlaceFirst ? 'before' : 'behind' };
}

/** Inserts the place into the message. This is the last step, because the place's line can change until then. */
export function insertPlace(diagnostic: Diagnostic): Diagnostic {
	const { place, ...diagnosticWithoutPlace } = diagnostic;
	const { message, span } = diagnosticWithoutPlace;
	if (place === undefined || !span) return diagnostic;
	if (place === 'before') return { ...diagnosticWithoutPlace, message: `${fileAndLine(span)}: ${message}` };
	return { ...diagnosticWithoutPlace, message: `${message}, at ${fileAndLine(span)}${importChain(span)}` };
}
