/** `split`: distributes requests to branches by percentages, always in the same way for the same key. */

import { requireBlock } from '../../lower/context/require-block.ts';
import type { Line } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { lowerShareKey, parsePercentage, type ShareMatcher } from '../matchers/share.ts';
import { firstMatchStep, type WhenBranch } from './when.ts';

const USAGE = 'split [matcher] <key> { <percentage>% { … }; * { … } }';

/** Lowers to a `first_match` step, like `when`, with a matcher `share` for each percentage. */
export const split = handlerDirective({
	kind: 'handler',
	id: '',
	names: { configfile: ['split'], compatfile: [] },
	usage: USAGE,
	summary: 'Distributes requests to branches by percentages, always in the same way for the same key.',
	documentation: [
		'Each line of the block is a percentage and the directives for that share of all keys; `*`, as the last line, is for the rest.',
		'Without it, the rest continues after the block, as do requests that a branch does not answer. The key is a text with',
		'placeholders: its hash decides, so a key gets the same branch in all threads, on all servers and after each reload. If the',
		'percentage of the first line grows, keys that it had remain there. A line with `0%` is switched off. An empty key, such as a',
		'cookie that is missing, gets the rest.',
		'',
		'```',
		'split {client_ip} {',
		'	10% {',
		'		reverse_proxy 10.0.0.2:8080',
		'	}',
		'	* {',
		'		reverse_proxy 10.0.0.1:8080',
		'	}',
		'}',
		'```',
		'',
		'In the document it is the handler `first_match` with the matcher `share`, which is a matcher of its own: `when share 10%',
		"{client_ip} { … }`. See there for what to consider about keys. The hash and the percentages are those of nginx's `split_clients`.",
	].join('\n'),
	matcherToken: 'optional',
	isBlock: true,
	lower: ({ line, args }, cx) => {
		const isCountValid = cx.count(line, args, 1, 1, USAGE);
		const block = requireBlock(line, cx);
		const key = isCountValid ? lowerShareKey(args[0]!, cx) : undefined;
		const branches = lowerBranches(block?.lines ?? [], key ?? '', cx);
		if (block?.lines.length === 0) {
			cx.problem('error', 'split/no-branch', line.words[0]!.span, '`split` has no branches.', {
				hint: `Usage: ${USAGE}`,
			});
		}
		return key === undefined || branches.length === 0 ? undefined : [firstMatchStep(branches)];
	},
	schema: { properties: {} },
	compile: undefined,
});

function lowerBranches(lines: readonly Line[], key: string, cx: LowerContext): WhenBranch[] {
	const branches: WhenBranch[] = [];
	// The sum of the percentages so far, in hundredths of a percent, because sums of decimal fractions are inexact.
	let assignedHundredths = 0;
	for (const [index, line] of lines.entries()) {
		const portionWord = line.words[0]!;
		const pipeline = cx.pipeline(requireBlock(line, cx)?.lines ?? []);
		if (line.words[1]) {
			const message = `\`${line.words[1].text}\` is unexpected after \`${portionWord.text}\`.`;
			cx.problem('error', 'split/unexpected-word', line.words[1].span, message, { hint: `Usage: ${USAGE}` });
		}
		if (portionWord.text === '*') {
			if (index < lines.length - 1) {
				cx.problem('error', 'split/after-rest', lines[index + 1]!.words[0]!.span, 'Nothing can follow the line `*`.');
			}
			if (assignedHundredths >= 10_000) {
				cx.problem(
					'error',
					'split/no-rest',
					portionWord.span,
					'The percentages above leave no requests for this line.',
				);
			}
			branches.push(cx.origin({ pipeline }, line.span));
			continue;
		}
		const percentage = parsePercentage(portionWord.text);
		if (percentage === undefined) {
			const message = `\`${portionWord.text}\` is not a percentage.`;
			cx.problem('error', 'split/invalid-percentage', portionWord.span, message, {
				hint: 'Write one from 0% to 100%, with at most two decimals, or `*` for the rest.',
			});
			continue;
		}
		const startHundredths = assignedHundredths;
		assignedHundredths += Math.round(percentage * 100);
		if (assignedHundredths > 10_000) {
			cx.problem(
				'error',
				'split/above-100',
				portionWord.span,
				`The percentages add up to ${assignedHundredths / 100}%.`,
			);
			assignedHundredths = 10_000;
		}
		const when: ShareMatcher = {
			type: 'share',
			key,
			...(startHundredths > 0 && { from: startHundredths / 100 }),
			to: assignedHundredths / 100,
		};
		branches.push(cx.origin({ when: cx.origin(when, portionWord.span), pipeline }, line.span));
	}
	return branches;
}
