const run = await pipeline("$tag", "$folder", { dtype: "$dtype" });
console.log(await run($arguments));
