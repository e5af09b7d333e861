/** Expands placeholders about the machine in log settings, such as `{env.NAME}` and `{system.hostname}`. */
import { compilePlaceholder } from '../../compiler/codegen/placeholders/index.ts';
import type { HostFacts, PlaceholderScope } from '../../compiler/codegen/placeholders/placeholder.ts';

/** Expands the placeholders in a string. `missing` is called for each placeholder without a value, which becomes empty. */
export type ExpandText = (text: string, missing?: (placeholder: string) => void) => string;

/** Returns a function that expands placeholders with the given facts. Placeholders about requests become empty. */
export function machineText(facts: HostFacts): ExpandText {
	return (text, missing) =>
		text.replace(/\\([{}])|\{([^{}]*)\}/g, (placeholder, brace: string | undefined, name: string) => {
			if (brace !== undefined) return brace;
			const value = /^(?:env|system)\./.test(name) ? compilePlaceholder(name, placeholderScope(facts)) : undefined;
			if (typeof value === 'string' && value !== '') return value;
			missing?.(placeholder);
			return '';
		});
}

function placeholderScope(facts: HostFacts): PlaceholderScope {
	const throwNoRequest = (): never => {
		throw new Error('There is no request.');
	};
	return { facts, clientIp: throwNoRequest, isMapped: () => false, files: throwNoRequest, needsBody: throwNoRequest };
}
