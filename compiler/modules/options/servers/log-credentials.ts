/** `log_credentials` inside `servers`: access logs show what they hide. */
import type { ServerOption } from './server-option.ts';

/** Shows credentials in access entries. */
export const logCredentials: ServerOption = {
	name: 'log_credentials',
	usage: 'log_credentials',
	summary: 'Access logs show cookies, authorizations and other fields with credentials, which are `REDACTED` else.',
	documentation: ['Whoever can read the log can then act for the visitors: keep it out of production.'],
	lower: (line, args, block, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, logCredentials.usage)) block.server.log_credentials = true;
	},
	schema: {
		log_credentials: { const: true, description: 'Access logs show fields that hold credentials.' },
	},
};
