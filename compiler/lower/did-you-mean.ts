/** The label that stands under a misspelt name. */
import { suggest } from '../diagnostics/suggest.ts';

/** `did you mean \`x\`?` with the nearest known name, or undefined when none is near. */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
	const nearest = suggest(name, known);
	return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`;
}
