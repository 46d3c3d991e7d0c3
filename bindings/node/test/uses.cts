// The same package by `require`, for the compiler. Never run.

import fuseline = require("fuseline");

const breaker: fuseline.Breaker = fuseline.getBreaker("openai");
export const state: fuseline.State = breaker.state;
