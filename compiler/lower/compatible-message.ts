/** Words the messages about a Compatfile as Caddy does, so that users can search the web for them. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { fileAndLine, importChain } from '../syntax/structure-mistake.ts';

/** Beginnings of messages that Caddy writes after the file and line rather than before them. */
const MESSAGES_AFTER_PLACE = ['unrecognized directive: ', 'unrecognized global option: '];
const NESTING_ADVICE = 'are you sure your Compatfile structure (nesting and braces) is correct?';

/**
 * Adds the name of the directive or option to a message, and determines whether the file and line go before or after the message.
 * A message that Caddy does not have contains a backtick or ends with a period; it is returned unchanged.
 */
export function withCompatibleMessage(
	message: string,
	directive: string | undefined,
): { readonly message: string; readonly place?: Diagnostic['place'] } {
	if (message.includes('`') || (message.endsWith('.') && /^[A-Z]/.test(message))) return { message };
	if (directive !== undefined)
		return { message: `parsing compatfile tokens for '${directive}': ${message}`, place: 'behind' };
	const isPlaceFirst = MESSAGES_AFTER_PLACE.some(text => message.startsWith(text)) && !message.endsWith(NESTING_ADVICE);
	return { message, place: isPlaceFirst ? 'before' : 'behind' };
}

/** Inserts the file and line into the message of a diagnostic. This is the last step, because the line may change until then. */
export function writePlaceIntoMessage(diagnostic: Diagnostic): Diagnostic {
	const { place, ...diagnosticWithoutPlace } = diagnostic;
	const { message, span } = diagnosticWithoutPlace;
	if (place === undefined || !span) return diagnostic;
	if (place === 'before') return { ...diagnosticWithoutPlace, message: `${fileAndLine(span)}: ${message}` };
	return { ...diagnosticWithoutPlace, message: `${message}, at ${fileAndLine(span)}${importChain(span)}` };
}
