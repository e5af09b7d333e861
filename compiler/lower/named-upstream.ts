/** `upstream name { … }`: a pool that several sites use by name. */
import type { UpstreamSettings } from '../exchange/leases.ts';
import type { NamedBlock } from '../syntax/ast.ts';
import type { LowerContext } from './lower-context.ts';

/** Lowers the block of a named upstream. Undefined after a mistake was reported. */
export function lowerNamedUpstream(upstream: NamedBlock, cx: LowerContext): UpstreamSettings | undefined {
	const to: string[] = [];
	for (const line of upstream.lines)
		if (line.words[0]!.text === 'to') to.push(...line.words.slice(1).map(word => cx.template(word)));
	return { name: upstream.name.text, to };
}
