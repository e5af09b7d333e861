/** The program that is run to create code caches. It determines which code the caches hold, and must be the same in every build. */

/** A typical configuration, which is compiled and served to create code caches. */
export const SAMPLE_CONFIGURATION = `{
	admin 127.0.0.1:2019
	threads 2
}

(common) {
	header -Server
	header X-Content-Type-Options nosniff
}

http://example.com, http://www.example.com {
	import common
	@old path /old /old/*
	redir @old /new permanent
	handle /api/* {
		reverse_proxy 127.0.0.1:9000
	}
	handle {
		root /srv
		file_server
	}
	log
}

:8080 {
	respond "Hello {host}" 200
}
`;

// Which code runs must not depend on the speed of the machine, because some code yields after a few milliseconds. The clock is
// therefore a fake.
let currentMs = 0;
performance.now = () => (currentMs += 0.001);
Date.now = () => 1_700_000_000_000 + Math.floor(performance.now());
