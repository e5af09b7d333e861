/** Lowers the global block to settings, and determines the order of directives. */

import { didYouMean } from '../diagnostics/suggest.ts';
import { configfileHint, foreignHint } from '../modules/contract/foreign-words.ts';
import type { SettingsDraft } from '../modules/contract/option.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Block, Line } from '../syntax/ast.ts';
import { UNAVAILABLE_GLOBAL_OPTIONS, unavailableHint, unavailableMessage } from './context/unavailable.ts';
import { DEFAULT_ORDER, moveDirective } from './directive-order.ts';
import type { Lowering } from './lowering.ts';
import type { Registry } from './registry.ts';

/** Lowers the global block to settings. Returns the order of directives according to the block's `order` options. */
export function lowerOptions(lowering: Lowering, block: Block | undefined, settings: SettingsDraft): readonly string[] {
	let order = DEFAULT_ORDER;
	if (!block) return order;
	const { registry } = lowering.environment;
	const earlierSpans = new Map<string, SourceSpan>();
	lowering.origin(settings, block.open);
	for (const line of block.lines) {
		const name = line.words[0]!;
		if (name.text === 'order') {
			order = lowering.within(name.text, () => lowerOrder(lowering, line, order));
			continue;
		}
		const option = registry.options.get(name.text);
		if (!option) {
			reportUnknownOption(lowering, line, registry);
			continue;
		}
		const earlierSpan = earlierSpans.get(name.text);
		if (earlierSpan && !option.repeatable && lowering.dialect === 'configfile') {
			lowering.problem('error', 'option/given-twice', name.span, `\`${name.text}\` is given more than once.`, {
				related: [{ span: earlierSpan, message: 'first given here' }],
			});
		}
		earlierSpans.set(name.text, name.span);
		lowering.within(name.text, () => option.lower(line, settings, lowering));
		lowering.origin(settings, block.open, { [option.id]: line.span });
	}
	return order;
}

function reportUnknownOption(lowering: Lowering, line: Line, registry: Registry): void {
	const { text, span } = line.words[0]!;
	if (UNAVAILABLE_GLOBAL_OPTIONS.has(text)) {
		lowering.problem('error', 'option/unavailable', span, unavailableMessage(text), { hint: unavailableHint(text) });
		return;
	}
	const message =
		lowering.dialect === 'compatfile' ? `unrecognized global option: ${text}` : `\`${text}\` is not a global option.`;
	const configfileOnlyHint =
		lowering.dialect === 'compatfile' ? configfileHint(text, registry.configfileOnly) : undefined;
	if (configfileOnlyHint !== undefined) {
		lowering.problem('error', 'option/unknown', span, message, { hint: configfileOnlyHint });
		return;
	}
	const { label, fix } = didYouMean({ text, span }, [...registry.options.keys(), ...UNAVAILABLE_GLOBAL_OPTIONS]);
	lowering.problem('error', 'option/unknown', span, message, {
		label,
		// The nearest name may be an unavailable option, and changing to it would fix nothing.
		fix: fix && registry.options.has(fix.edits[0]!.text) ? fix : undefined,
		hint: registry.directives.has(text) ? 'It is a directive: write it in a site.' : foreignHint(text),
	});
}

function lowerOrder(lowering: Lowering, line: Line, order: readonly string[]): readonly string[] {
	const name = line.words[0]!;
	if (lowering.dialect === 'configfile') {
		const message = '`order` has no effect here: directives run in the order in which they are written.';
		lowering.problem('error', 'option/order', name.span, message, {
			hint: 'Remove it, and write directives in the order in which they should run.',
		});
		return order;
	}
	const usage = 'order <directive> first | last | before <other> | after <other>';
	const args = line.words.slice(1);
	const [directive, position, otherDirective] = args;
	if (!lowering.count(line, args, 2, 3, usage) || !directive || !position) return order;
	const knownDirectives = lowering.environment.registry.directives;
	if (!knownDirectives.has(directive.text) && !DEFAULT_ORDER.includes(directive.text)) {
		lowering.problem('error', 'option/order', directive.span, `${directive.text} is not a registered directive`, {
			...didYouMean(directive, DEFAULT_ORDER),
		});
		return order;
	}
	const { text } = position;
	if (text === 'first' || text === 'last') {
		if (!lowering.count(line, args, 2, 2, usage)) return order;
		return moveDirective(order, { directive: directive.text, to: text })!;
	}
	if (text !== 'before' && text !== 'after') {
		lowering.problem('error', 'option/order', position.span, `unknown positional '${text}'`, {
			hint: `Usage: ${usage}`,
		});
		return order;
	}
	if (!otherDirective) {
		lowering.count(line, args, 3, 3, usage);
		return order;
	}
	const newOrder = moveDirective(order, { directive: directive.text, to: text, other: otherDirective.text });
	if (newOrder) return newOrder;
	lowering.problem('error', 'option/order', otherDirective.span, `directive '${otherDirective.text}' not found`, {
		...didYouMean(otherDirective, order),
	});
	return order;
}
