/** `log_credentials` inside `servers`: shows credentials in access logs. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.servers[].log_credentials` in the document. */
export const logCredentials: ServerOption = {
	name: 'log_credentials',
	usage: 'log_credentials',
	summary: 'Shows cookies, authorizations and other credentials in access logs, where they are otherwise `REDACTED`.',
	documentation: ['Whoever can read the log can then act as the visitors: do not use it in production.'],
	lower: (line, args, block, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, logCredentials.usage)) block.server.log_credentials = true;
	},
	schema: {
		log_credentials: { const: true, description: 'Shows fields with credentials in access logs.' },
	},
};
