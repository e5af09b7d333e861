/** Texts of log settings that take something from the machine: `{env.NAME}`, `{system.hostname}`. */
import { compilePlaceholder } from '../../compiler/codegen/placeholders/index.ts';
import type { HostFacts, PlaceholderScope } from '../../compiler/codegen/placeholders/placeholder.ts';

/** Fills a text in. `missing` is told of each placeholder that gives nothing, which leaves nothing in the text. */
export type ExpandText = (text: string, missing?: (placeholder: string) => void) => string;

/** Takes everything from these facts. Placeholders of requests give nothing: there is none. */
export function machineText(facts: HostFacts): ExpandText {
	return (text, missing) =>
		text.replace(/\\([{}])|\{([^{}]*)\}/g, (whole, brace: string | undefined, name: string) => {
			if (brace !== undefined) return brace;
			const value = /^(?:env|system)\./.test(name) ? compilePlaceholder(name, scopeOf(facts)) : undefined;
			if (typeof value === 'string' && value !== '') return value;
			missing?.(whole);
			return '';
		});
}

function scopeOf(facts: HostFacts): PlaceholderScope {
	const none = (): never => {
		throw new Error('There is no request.');
	};
	return { facts, clientIp: none, isMapped: () => false, files: none, needsBody: none };
}
