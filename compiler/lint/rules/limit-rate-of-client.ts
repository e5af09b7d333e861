/**
 * The lint rule `limit-rate/of-client`, which reports a rate that contains a value from the client. The client can then choose
 * any rate or none.
 */
import { type LimitRateStep, limitRate } from '../../modules/directives/limit-rate.ts';
import { clientChosenPlaceholders } from '../inspection/client-chosen.ts';
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const limitRateOfClient: LintRule = {
	name: 'limit-rate/of-client',
	severity: 'warning',
	summary: 'A client can choose its own rate.',
	documentation: [
		'A rate that comes from a header, a cookie or the query is the one that the client asks for: it can send `off`. Compute the',
		'rate with `map`, or take it from a field that another directive sets, such as `forward_auth` with `copy_headers`.',
	].join('\n'),
	check: cx => {
		if (!cx.walkedDocument.steps.some(({ step }) => step.handler === limitRate.id)) return;
		const editedFields = new Set<string>();
		for (const { name, editedMessage, isRemoval } of fieldEditsOf(cx.walkedDocument)) {
			if (editedMessage === 'request' && !isRemoval) editedFields.add(`http.request.header.${name.toLowerCase()}`);
		}
		for (const { step, pointer } of cx.walkedDocument.steps) {
			if (step.handler !== limitRate.id) continue;
			const { rate } = step as LimitRateStep;
			if (typeof rate !== 'string') continue;
			const clientPlaceholders = clientChosenPlaceholders(rate).filter(name => !editedFields.has(name.toLowerCase()));
			if (clientPlaceholders.length === 0) continue;
			cx.reportAt(`${pointer}/rate`, 'A client can choose this rate itself.', {
				hint: 'Compute the rate with `map` from something that the client cannot choose, such as `{client_ip}`.',
			});
		}
	},
};
